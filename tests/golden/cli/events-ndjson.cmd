drdotnet-trace events --format ndjson fixtures/synthetic-v4.nettrace
