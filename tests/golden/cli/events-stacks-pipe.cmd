cat fixtures/synthetic-v4.nettrace | drdotnet-trace events --stacks --limit 1 -
