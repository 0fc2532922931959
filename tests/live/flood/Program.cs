// SPDX-License-Identifier: MIT
// More events than anybody wants: Flood awaits|events SECONDS [WORKERS [PER_SECOND]]
// Steady work with awaits in it:  Flood work SECONDS AWAITS_PER_SECOND THREADS
//     One worker that is busy all the time, with as much to compute between two awaits as makes that
//     many a second undisturbed; THREADS wait.  A line "count NUMBER SECONDS" every 200 ms.
using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

var mode = args.Length > 0 ? args[0] : "events";
var seconds = args.Length > 1 ? double.Parse(args[1]) : 10;
var workers = args.Length > 2 ? int.Parse(args[2]) : 4;
var perSecond = args.Length > 3 ? double.Parse(args[3]) : 0; // of each worker; 0: as many as it can
var clock = Stopwatch.StartNew();
long done = 0;

// False when the time is over; waits where that many a second are enough.
bool Next(ref long n)
{
    n++;
    while (perSecond > 0 && n > clock.Elapsed.TotalSeconds * perSecond && clock.Elapsed.TotalSeconds < seconds)
        Thread.Sleep(1);
    return clock.Elapsed.TotalSeconds < seconds;
}

async Task Await()
{
    long n = 0;
    while (Next(ref n))
        await Task.Run(() => { });
    Interlocked.Add(ref done, n);
}

void Write(int worker)
{
    long n = 0;
    while (Next(ref n))
        FloodSource.Log.Drop(worker, n);
    Interlocked.Add(ref done, n);
}

async Task Work(double awaitsPerSecond)
{
    // Computing is measured in rounds, not in time: a disturbed worker gets less of it done.
    var rounds = Rounds(2 / awaitsPerSecond);
    long n = 0;
    while (clock.Elapsed.TotalSeconds < seconds)
    {
        await Part(rounds);
        Volatile.Write(ref done, n += 2);
    }
}

static async Task Part(long rounds)
{
    Compute(rounds);
    await Task.Yield();
}

// How many rounds take that long.
static long Rounds(double wanted)
{
    var best = double.MaxValue;
    const long Many = 2_000_000;
    for (var i = 0; i < 20; i++)
    {
        var begin = Stopwatch.GetTimestamp();
        Compute(Many);
        best = Math.Min(best, Stopwatch.GetElapsedTime(begin).TotalSeconds / Many);
    }
    return Math.Max(1, (long)(wanted / best));
}

static ulong Compute(long rounds)
{
    ulong x = 88172645463325252;
    for (long i = 0; i < rounds; i++)
    {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

Console.WriteLine($"pid {Environment.ProcessId}");
if (mode == "work")
{
    var threads = perSecond;
    var gate = new ManualResetEvent(false);
    for (var i = 0; i < threads; i++)
        new Thread(() => gate.WaitOne(), 256 * 1024) { IsBackground = true }.Start();
    var work = Task.Run(() => Work(workers));
    while (!work.Wait(200))
        Console.WriteLine(FormattableString.Invariant($"count {Volatile.Read(ref done)} {clock.Elapsed.TotalSeconds:F6}"));
}
else if (mode == "awaits")
    await Task.WhenAll(Enumerable.Range(0, workers).Select(_ => Task.Run(Await)));
else
{
    var threads = Enumerable.Range(0, workers).Select(i => new Thread(() => Write(i))).ToArray();
    foreach (var t in threads) t.Start();
    foreach (var t in threads) t.Join();
}
Console.WriteLine($"done {done}");

[EventSource(Name = "Flood")]
sealed class FloodSource : EventSource
{
    public static readonly FloodSource Log = new();
    [Event(1, Level = EventLevel.Informational)]
    public void Drop(int worker, long number) => WriteEvent(1, worker, number);
}
