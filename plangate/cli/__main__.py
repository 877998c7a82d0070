"""`python -m plangate.cli`: the same command where no script is installed."""

from plangate.cli.main import main

if __name__ == "__main__":
    main()
