echo theirs > report.txt
drdotnet-trace report -o report.txt fixtures/synthetic-v4.nettrace
echo "exit $?"
cat report.txt
drdotnet-trace report -o report.json --force --json fixtures/no-such
ls
