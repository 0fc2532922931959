drdotnet-trace doctor --help
