#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What stands around sample: cron, the node exporter and Prometheus, a pod whose second container it
is."""

import json
import math
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from live import (LONG, PROGRAM, TOP, check, done, parts, run, samples, scratch, shop,
                  skip, wait_until, workload)

if run("help", "sample").code != 0:
    skip("this program was built without SQLite")

SOMEBODY = 1000  # of sidecar.yaml


# --- Prometheus ---

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(url):
    """The text there, or None as long as nobody answers."""
    try:
        # Not through a proxy.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=5) as answer:
            return answer.read().decode("utf-8")
    except (urllib.error.URLError, ConnectionError):
        return None


def key(name, labels):
    """Name and labels in no order, without what Prometheus adds."""
    return name, frozenset((k, v) for k, v in labels if k not in ("__name__", "instance", "job"))


def series(text):
    """The values of the text format by their key(); no test here has a label that is escaped."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            k = key(name.split("{")[0], re.findall(r'(\w+)="([^"]*)"', name))
            check(k not in found, "series differ by their labels", line)
            found[k] = float(value)
    return found


def same(got, ours, where):
    """Whether each series of ours is among those, with its value."""
    for k, value in ours.items():
        check(k in got and math.isclose(got[k], value, rel_tol=1e-9), where + " has it", k, value,
              got.get(k))


class Server:
    """A program that listens until the end of the with block."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.process.wait()


def ask(prometheus, query):
    """What Prometheus answers: a list of its label sets and values."""
    text = fetch(prometheus + "/api/v1/query?" + urllib.parse.urlencode({"query": query}))
    return [(x["metric"], float(x["value"][1]))
            for x in json.loads(text)["data"]["result"]] if text else []


def scraped(folder, exporter, ours):
    """By Prometheus, from the node exporter: every series of ours, with its value."""
    if not shutil.which("prometheus"):
        print("prometheus is not here: nothing is scraped")
        return
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("scrape_configs:\n- job_name: node\n  scrape_interval: 1s\n  static_configs:\n"
                "  - targets: ['%s']\n" % exporter)
    address = "127.0.0.1:%d" % free_port()
    with Server("prometheus", "--config.file=" + config, "--web.listen-address=" + address,
                "--storage.tsdb.path=" + os.path.join(folder, "tsdb")):
        all_of_ours = wait_until("Prometheus has scraped it", lambda: ask(
            "http://" + address, '{__name__=~"drdotnet_.*"}'), 60) or []
    check(len(all_of_ours) == len(ours), "Prometheus has nothing else of ours", all_of_ours)
    same({key(m["__name__"], m.items()): v for m, v in all_of_ours}, ours, "Prometheus")


def prometheus(folder):
    path = os.path.join(folder, "textfile", "shop.prom")
    os.mkdir(os.path.dirname(path))
    with shop("net10", "gc") as app:
        r = run("sample", "-p", app.pid, "--duration", "1s", "-q", "--prometheus", path, "--store",
                os.path.join(folder, "store"))
        check(r.code == 0, "a sample with metrics", r)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    ours = series(text)
    for name in ("drdotnet_gc_pause_seconds{", "drdotnet_method_cpu_cores{",
                 "drdotnet_sample_cpu_seconds{"):
        check(name in text, "a family " + name, text)
    if shutil.which("promtool"):
        r = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                           text=True, check=False)
        check(r.returncode == 0 and not r.stderr, "promtool finds nothing wrong", r.stdout, r.stderr)
    else:
        print("promtool is not here: the metrics are not checked by it")
    if not shutil.which("prometheus-node-exporter"):
        print("prometheus-node-exporter is not here: nothing is exported")
        return
    exporter = "127.0.0.1:%d" % free_port()
    with Server("prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                "--collector.textfile.directory=" + os.path.dirname(path),
                "--web.listen-address=" + exporter):
        metrics = wait_until("the node exporter answers", lambda: fetch("http://%s/metrics" % exporter))
        got = series(metrics or "")
        check(got.get(key("node_textfile_scrape_error", ())) == 0, "the exporter can read it", metrics)
        same(got, ours, "the exporter")
        scraped(folder, exporter, ours)


# --- a sidecar ---

def recipe():
    """The command of the second container, as printed."""
    with open(os.path.join(TOP, "packaging", "sidecar.yaml"), encoding="utf-8") as f:
        words = re.search(r"command: \[(.*?)\]", f.read(), re.S).group(1)
    return [w.strip() for w in words.split(",")]


def image(root):
    """A root directory with nothing in it but the program and what it is linked with."""
    for name in ("proc", "tmp", "store", "usr/bin"):
        os.makedirs(os.path.join(root, name))
    shutil.copy(PROGRAM, os.path.join(root, "usr/bin/drdotnet-trace"))
    libraries = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=False).stdout
    for path in re.findall(r"(/\S+)", libraries):
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, root + path)
    os.chmod(root, 0o755)


def sidecar(folder):
    """Two containers of a pod: one pid namespace and one folder of sockets, but a root directory
    each; and a volume as Kubernetes makes it, into which the pod's group may write."""
    if os.geteuid() != 0 or subprocess.call(["unshare", "-p", "-f", "-m", "--mount-proc", "true"],
                                            stderr=subprocess.DEVNULL) != 0:
        print("sidecar: namespaces need root, and a kernel that lets root have them")
        return
    os.chmod(folder, 0o755)
    root, tmp = os.path.join(folder, "root"), os.path.join(folder, "tmp")
    image(root)
    os.mkdir(tmp)
    os.chmod(tmp, 0o1777)
    store = os.path.join(root, "store")
    os.chown(store, 0, SOMEBODY)
    os.chmod(store, 0o2777)
    shutil.copytree(os.path.join(workload("net10"), "bin"), tmp + "/shop")
    subprocess.check_call(["chmod", "-R", "a+rX", tmp + "/shop"])
    user = "setpriv --reuid=%d --regid=%d --clear-groups" % (SOMEBODY, SOMEBODY)
    command = " ".join(recipe()).replace("60s", "2s") + " --count 2 --duration 1s"
    # Number 1 is what holds the pod together.
    script = (
        "cd {root} && mount -t proc proc proc && mount --bind {tmp} tmp && mount --bind {tmp} /tmp\n"
        "HOME=/nonexistent {user} /tmp/shop/Shop gc 60 &\n"
        "for i in $(seq 200); do ls /tmp/dotnet-diagnostic-* >/dev/null 2>&1 && break; sleep .05; done\n"
        "env -i PATH=/usr/bin {chroot} --userspec={uid}:{uid} . {command}\n"
    ).format(tmp=tmp, root=root, user=user, uid=SOMEBODY, command=command,
             chroot=shutil.which("chroot"))
    r = subprocess.run(["unshare", "-p", "-f", "-m", "--mount-proc", "--kill-child", "sh", "-c", script],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                       check=False)
    check(r.returncode == 0 and "2 rounds" in r.stderr, "sidecar: two rounds", r.stdout, r.stderr)
    where = recipe()[recipe().index("--store") + 1]
    got = samples(root + where)
    check(len(got) == 2 and all(s["name"] == "Shop" for s in got), "sidecar: two samples", got)
    prom = recipe()[recipe().index("--prometheus") + 1]
    if not check(os.path.exists(root + prom), "sidecar: a file for Prometheus"):
        return
    with open(root + prom, encoding="utf-8") as f:
        check('process="Shop"' in f.read(), "sidecar: its metrics")
    check(os.stat(root + where).st_mode & 0o777 == 0o700, "sidecar: the store is its own")


# --- cron ---

def crontab_line():
    """The line that --help prints, as cron runs it."""
    if not LONG or os.geteuid() != 0 or not shutil.which("cron"):
        return
    line = [x for x in run("sample", "--help").out.splitlines() if "* * * *" in x][0]
    words = line.split()
    command = " ".join(words[5:words.index("(a")])
    with scratch() as folder, shop("net10", "idle") as app:
        cron_d, path, state = (os.path.join(folder, x) for x in ("cron.d", "bin", "state"))
        said = os.path.join(folder, "said")
        for x in (cron_d, path, state):
            os.mkdir(x, 0o755)
        os.symlink(PROGRAM, os.path.join(path, "drdotnet-trace"))
        with open(os.path.join(cron_d, "drd"), "w", encoding="utf-8") as f:
            f.write("PATH=%s:/usr/bin:/bin\nXDG_STATE_HOME=%s\n* * * * * root %s >>%s 2>&1\n"
                    % (path, state, command.replace("30s", "1s"), said))
        os.chmod(os.path.join(cron_d, "drd"), 0o644)  # else cron does not read it
        # The machine's own jobs do not run, and its own cron does not mind.
        cron = subprocess.Popen(["unshare", "-m", "sh", "-c",
                                 "mount --bind %s /etc/cron.d && mount --bind /dev/null /etc/crontab"
                                 " && mount -t tmpfs none /run && exec cron -f" % cron_d])
        store = os.path.join(state, "drdotnet-trace")
        taken = wait_until("cron has taken a sample",
                           lambda: any(s["pid"] == app.pid for s in samples(store)), 150)
        cron.terminate()
        cron.wait()
        if not taken and os.path.exists(said):
            with open(said, encoding="utf-8") as f:
                print(f.read())


if __name__ == "__main__":
    for function in (prometheus, sidecar):
        with scratch() as place:
            parts((function,), place)
    parts((crontab_line,))
    done()
