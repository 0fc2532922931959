drdotnet-trace --help
