drdotnet-trace events --name "GC*" --limit 12 fixtures/gc-net8.nettrace.zst
