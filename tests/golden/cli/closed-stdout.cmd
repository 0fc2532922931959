drdotnet-trace events fixtures/synthetic-v4.nettrace >&-
