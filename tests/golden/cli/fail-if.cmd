for e in 'events.lost > 0' 'events.lost > 1000000' 'gc.count > 5 and gc.gen0 > 1' \
	'cpu.samples < 5 or gc.count < 5' 'gc.cuont > 1' 'gc.count > 5 for 30s' 'gc.count > 5 minutes'
do
	drdotnet-trace report fixtures/lost-net10.nettrace.zst summary --fail-if "$e" >out
	echo "exit code $?, a report: $(grep -c '^drdotnet-trace\|^Trace\|events' out | sed 's/^[1-9].*/yes/')" >&2
done
drdotnet-trace report fixtures/gc-net8.nettrace.zst --fail-if 'cpu.samples > 0' >out
echo "exit code $?" >&2
drdotnet-trace report fixtures/gc-net8.nettrace.zst --fail-if 'cpu.samples > 0' \
	--fail-if 'gc.gen2 > 0' -o out.txt
echo "exit code $?" >&2; test -s out.txt || echo "no report" >&2
for s in critical warning never
do
	drdotnet-trace report fixtures/lost-net10.nettrace.zst summary --fail-on $s 2>said >out
	echo "exit code $?, $(sed 's/: [0-9]* finding.*//' said)" >&2
	drdotnet-trace report fixtures/meters-net10.nettrace.zst summary --fail-on $s >out
	echo "exit code $?" >&2
done
# Partial, and a condition holds; a failure stays one.
zstd -dcq fixtures/gc-net10.nettrace.zst | head -c 300000 >cut.nettrace
drdotnet-trace report cut.nettrace --fail-if 'trace.complete == false' >out
echo "exit code $?" >&2
drdotnet-trace report cut.nettrace --fail-if 'trace.complete == true' >out
echo "exit code $?" >&2
head -c 10 cut.nettrace | drdotnet-trace report - --fail-if 'trace.complete == false'
echo "exit code $?" >&2
