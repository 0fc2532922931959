drdotnet-trace events -h
