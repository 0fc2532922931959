drdotnet-trace --json report x.nettrace
