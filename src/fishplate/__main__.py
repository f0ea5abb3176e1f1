"""`python -m fishplate` is `fishplate`."""

from fishplate.cli import main

if __name__ == "__main__":
    main()
