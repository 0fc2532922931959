drdotnet-trace report fixtures/gc-net10.nettrace.zst summary gc --top 1 --limit gc.time=90 --limit gc.induced.warning=7 --limit gc.full-blocking=1000% --limit gc.full-blocking.rate=1000 --limit gc.mid-life=99.5 | sed '/^SUMMARY/,$d'
drdotnet-trace report fixtures/gc-net10.nettrace.zst gc --limit gc.time=90 --json | grep -A2 '"limits"'
