"""What runs cost: tokens, prices, estimate before, meter while."""
