drdotnet-trace report --list-values | grep -E ' (MEANING|trace.events_lost|gc.count|gc.pause_p99_ms|threadpool.starvation|events.lost|events.count) '
drdotnet-trace report --list-values --json | head -8
