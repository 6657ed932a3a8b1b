/* A stand-in for libnvidia-ml.so.1: the calls that pynvml makes for us, answered from a text file.
 *
 * $FAKE_NVML names the file, read anew at each call; without it there is "no driver". Its lines:
 *   driver 580.65.06 13000
 *   topology LEVEL
 *   gpu INDEX key=value ...     total used (MiB), drain_from (s since the epoch), drain (MiB/s),
 *                               util power temp sm mem reasons ecc mig lost old name
 *   proc INDEX PID MIB          counted, memory included, for as long as the process is alive
 * drain: `used` falls by so many MiB a second from drain_from on, as after a server's end.
 * old=1: a driver that does not know the newer name of the clocks' reasons.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define MOST 64
#define MB (1024ULL * 1024ULL)
enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, NO_DRIVER = 9, LOST = 15 };

typedef struct {
  int index, there, mig, lost, old;
  double total, used, drain_from, drain, util, power, temp, sm, mem, ecc;
  unsigned long long reasons;
  char name[96], uuid[96];
} Gpu;
typedef struct { int gpu; unsigned pid; double mb; } Proc;

static __thread Gpu gpus[MOST];
static __thread Proc procs[MOST];
static __thread int gpu_count, proc_count, cuda, topology;
static __thread char driver[80];
/* Handles outlive a call, so they only say which GPU is meant. */
static int handles[MOST];

static int alive(unsigned pid) {
  char path[64], state = 'X';
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  FILE *f = fopen(path, "r");
  if (!f) return 0;
  if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1) state = 'R';
  fclose(f);
  return state != 'Z' && state != 'X';
}

static double now(void) {
  struct timeval t;
  gettimeofday(&t, NULL);
  return t.tv_sec + t.tv_usec / 1e6;
}

static void set(Gpu *g, const char *key, const char *value) {
  double v = strtod(value, NULL);
  if (!strcmp(key, "total")) g->total = v;
  else if (!strcmp(key, "used")) g->used = v;
  else if (!strcmp(key, "drain_from")) g->drain_from = v;
  else if (!strcmp(key, "drain")) g->drain = v;
  else if (!strcmp(key, "util")) g->util = v;
  else if (!strcmp(key, "power")) g->power = v;
  else if (!strcmp(key, "temp")) g->temp = v;
  else if (!strcmp(key, "sm")) g->sm = v;
  else if (!strcmp(key, "mem")) g->mem = v;
  else if (!strcmp(key, "ecc")) g->ecc = v;
  else if (!strcmp(key, "mig")) g->mig = (int)v;
  else if (!strcmp(key, "lost")) g->lost = (int)v;
  else if (!strcmp(key, "old")) g->old = (int)v;
  else if (!strcmp(key, "reasons")) g->reasons = strtoull(value, NULL, 0);
  else if (!strcmp(key, "name")) {
    snprintf(g->name, sizeof g->name, "%s", value);
    for (char *c = g->name; *c; c++) if (*c == '_') *c = ' ';
  }
}

static int load(void) {
  const char *path = getenv("FAKE_NVML");
  FILE *f = path ? fopen(path, "r") : NULL;
  char line[1024];
  if (!f) return NO_DRIVER;
  gpu_count = proc_count = 0, cuda = 13000, topology = 10;
  strcpy(driver, "580.65.06");
  while (fgets(line, sizeof line, f)) {
    int n, at;
    unsigned pid;
    double mb;
    if (sscanf(line, "driver %79s %d", driver, &cuda) >= 1) continue;
    if (sscanf(line, "topology %d", &topology) == 1) continue;
    if (sscanf(line, "proc %d %u %lf", &n, &pid, &mb) == 3 && proc_count < MOST) {
      procs[proc_count++] = (Proc){n, pid, mb};
      continue;
    }
    if (sscanf(line, "gpu %d%n", &n, &at) == 1 && gpu_count < MOST && n == gpu_count) {
      Gpu *g = &gpus[gpu_count++];
      memset(g, 0, sizeof *g);
      g->index = n, g->total = 97887, g->util = 90, g->power = 400, g->temp = 60;
      g->sm = 2400, g->mem = 12000;
      strcpy(g->name, "NVIDIA RTX PRO 6000 Blackwell Server Edition");
      snprintf(g->uuid, sizeof g->uuid, "GPU-%08d-1111-2222-3333-444444444444", n);
      for (char *word = strtok(line + at, " \t\n"); word; word = strtok(NULL, " \t\n")) {
        char *equals = strchr(word, '=');
        if (equals) *equals = 0, set(g, word, equals + 1);
      }
    }
  }
  fclose(f);
  return OK;
}

static int find(void *device, Gpu **g) {
  int rc = load();
  if (rc) return rc;
  int n = (int)((int *)device - handles);
  if (n < 0 || n >= gpu_count) return INVALID;
  *g = &gpus[n];
  return (*g)->lost ? LOST : OK;
}
#define GPU Gpu *g; int rc = find(d, &g); if (rc) return rc

int nvmlInitWithFlags(unsigned flags) { (void)flags; return load(); }
int nvmlInit_v2(void) { return load(); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) {
  return code == NO_DRIVER ? "Driver Not Loaded" : code == LOST ? "GPU is lost" : "some error";
}
int nvmlSystemGetDriverVersion(char *text, unsigned size) {
  int rc = load();
  if (!rc) snprintf(text, size, "%s", driver);
  return rc;
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) { int rc = load(); *version = cuda; return rc; }
int nvmlDeviceGetCount_v2(unsigned *count) { int rc = load(); *count = gpu_count; return rc; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **d) {
  int rc = load();
  if (rc) return rc;
  if ((int)index >= gpu_count) return INVALID;
  *d = &handles[index];
  return gpus[index].lost ? LOST : OK;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **d) {
  int rc = load();
  if (rc) return rc;
  for (int n = 0; n < gpu_count; n++)
    if (!strcmp(gpus[n].uuid, uuid)) return *d = &handles[n], gpus[n].lost ? LOST : OK;
  return NOT_FOUND;
}
int nvmlDeviceGetUUID(void *d, char *text, unsigned size) { GPU; snprintf(text, size, "%s", g->uuid); return OK; }
int nvmlDeviceGetName(void *d, char *text, unsigned size) { GPU; snprintf(text, size, "%s", g->name); return OK; }

static unsigned long long used(Gpu *g) {
  double mb = g->used;
  if (g->drain > 0 && now() > g->drain_from) mb -= g->drain * (now() - g->drain_from);
  if (mb < 0) mb = 0;
  for (int n = 0; n < proc_count; n++)
    if (procs[n].gpu == g->index && alive(procs[n].pid)) mb += procs[n].mb;
  return (unsigned long long)(mb * MB);
}
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
int nvmlDeviceGetMemoryInfo(void *d, Memory *m) {
  GPU;
  m->total = (unsigned long long)g->total * MB, m->used = used(g), m->free = m->total - m->used;
  return OK;
}
int nvmlDeviceGetMemoryInfo_v2(void *d, Memory2 *m) {
  GPU;
  if (g->old) return 25; /* version mismatch */
  m->reserved = 600 * MB, m->total = (unsigned long long)g->total * MB + m->reserved;
  m->used = used(g), m->free = m->total - m->reserved - m->used;
  return OK;
}
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } ProcessInfo;
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *count, ProcessInfo *out) {
  GPU;
  unsigned found = 0, room = *count;
  for (int n = 0; n < proc_count; n++) {
    if (procs[n].gpu != g->index || !alive(procs[n].pid)) continue;
    if (out && found < room)
      out[found] = (ProcessInfo){procs[n].pid, (unsigned long long)(procs[n].mb * MB), -1, -1};
    found++;
  }
  *count = found;
  return found > room || (found && !out) ? TOO_SMALL : OK;
}
int nvmlDeviceGetMigMode(void *d, unsigned *current, unsigned *pending) {
  GPU;
  *current = *pending = g->mig;
  return OK;
}
typedef struct { unsigned gpu, memory; } Utilization;
int nvmlDeviceGetUtilizationRates(void *d, Utilization *u) { GPU; u->gpu = g->util, u->memory = 10; return OK; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *milliwatts) { GPU; *milliwatts = g->power * 1000; return OK; }
int nvmlDeviceGetClockInfo(void *d, int which, unsigned *mhz) { GPU; *mhz = which == 2 ? g->mem : g->sm; return OK; }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *c) { GPU; (void)sensor; *c = g->temp; return OK; }
int nvmlDeviceGetCurrentClocksEventReasons(void *d, unsigned long long *r) {
  GPU;
  if (g->old) return 13; /* function not found */
  *r = g->reasons;
  return OK;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *r) { GPU; *r = g->reasons; return OK; }
int nvmlDeviceGetTotalEccErrors(void *d, int type, int counter, unsigned long long *count) {
  GPU;
  (void)type, (void)counter;
  if (g->ecc < 0) return NOT_SUPPORTED;
  *count = g->ecc;
  return OK;
}
int nvmlDeviceGetTopologyCommonAncestor(void *d, void *other, int *level) {
  GPU;
  (void)other;
  *level = topology;
  return OK;
}
