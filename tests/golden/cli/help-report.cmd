drdotnet-trace report --help
