# Silence is said of what was looked at only, and a condition on findings looks at everything.
drdotnet-trace report fixtures/deadlock-net10.nettrace.zst threadpool | head -2
drdotnet-trace report fixtures/deadlock-net10.nettrace.zst threadpool --fail-on critical >/dev/null
echo "exit $?"
