drdotnet-trace events --format csv fixtures/synthetic-v4.nettrace
