drdotnet-trace ./no-such
