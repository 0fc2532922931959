drdotnet-trace --list-options report
