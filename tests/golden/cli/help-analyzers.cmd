drdotnet-trace analyzers --help
