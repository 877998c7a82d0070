"""Measurements of plangate itself: does it keep what it says?"""
