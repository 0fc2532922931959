drdotnet-trace stack --help
