drdotnet-trace events -o out.txt fixtures/synthetic-v4.nettrace
cat out.txt
drdotnet-trace events -o out.txt --limit 1 fixtures/synthetic-v4.nettrace
echo "exit $?"
drdotnet-trace events -o out.txt --limit 1 --force fixtures/synthetic-v4.nettrace
cat out.txt
ls
