drdotnet-trace process --help
