# A report is never written over the trace it is made from, whatever the name's spelling.
cp fixtures/synthetic-v4.nettrace t.nettrace
drdotnet-trace report t.nettrace -o ./t.nettrace --force
echo "exit $?"
ln -s t.nettrace link
drdotnet-trace report t.nettrace -o link --force
echo "exit $?"
cmp t.nettrace fixtures/synthetic-v4.nettrace && echo untouched
drdotnet-trace collect -p 1 -o a.nettrace --report ./a.nettrace --force
echo "exit $?"
drdotnet-trace collect -p 1 -o - --report -
echo "exit $?"
drdotnet-trace collect -p 1 -o - >&-
echo "exit $?"
