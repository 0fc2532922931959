head -c 60000 fixtures/cpu-net10.nettrace.zst > cut.zst
drdotnet-trace events --count cut.zst > out
echo "exit $?"
head -1 out
head -c 10 fixtures/cpu-net10.nettrace.zst > cut.zst
drdotnet-trace events --count cut.zst
