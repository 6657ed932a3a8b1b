"""`python -m specdebug.up`: what bin/start runs after the set-up."""

from specdebug.up.command import main

raise SystemExit(main())
