drdotnet-trace --list-options
