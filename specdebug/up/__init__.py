"""Everything on one machine with one command: broker, worker, web, example, until Ctrl-C."""
