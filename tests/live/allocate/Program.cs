// SPDX-License-Identifier: MIT
// Allocates at a steady rate on some threads, and writes down what the runtime itself counts:
//	Allocate FILE SECONDS THREADS
// A line of FILE is "microseconds since 1970, bytes allocated since the start of the process".
using System;
using System.Globalization;
using System.IO;
using System.Runtime.CompilerServices;
using System.Threading;

static class Program
{
    static object kept;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Make(Random random)
    {
        kept = new byte[random.Next(100, 4000)];
        if (random.Next(200) == 0)
            kept = new byte[100000];
    }

    static void Work(DateTime end, int seed)
    {
        var random = new Random(seed);

        while (DateTime.UtcNow < end)
        {
            for (int i = 0; i < 200; i++)
                Make(random);
            Thread.Sleep(1);
        }
    }

    static void Main(string[] args)
    {
        var end = DateTime.UtcNow.AddSeconds(double.Parse(args[1], CultureInfo.InvariantCulture));
        var epoch = DateTime.UnixEpoch;

        using var file = new StreamWriter(args[0]) { AutoFlush = true };
        for (int i = 0; i < int.Parse(args[2]); i++)
        {
            int seed = i;

            new Thread(() => Work(end, seed)) { IsBackground = true }.Start();
        }
        while (DateTime.UtcNow < end)
        {
            long bytes = GC.GetTotalAllocatedBytes(false);
            long now = (DateTime.UtcNow - epoch).Ticks / 10;

            file.WriteLine(now.ToString(CultureInfo.InvariantCulture) + "," +
                           bytes.ToString(CultureInfo.InvariantCulture));
            Thread.Sleep(20);
        }
    }
}
