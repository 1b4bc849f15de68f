/* A libnvidia-ml.so.1 that nvidia-ml-py loads in place of NVIDIA's: eight H100 whose state is in the environment.
   NVML_GPUS, NVML_LOST (the number of a GPU that is lost), NVML_DEAD (the driver does not answer), NVML_ECC, NVML_REMAP_PENDING
   and NVML_REMAP_FAILED (the number of a GPU each), NVML_LINKS (active links of GPU 0), NVML_LINKS_AFTER (a file without which no link is active), NVML_MIG, NVML_MIG_UNSAID (the error by which it answers whether it is divided),
   NVML_REASONS (the bits of why GPU 0 lowers its clock), NVML_SRAM (a GPU over the threshold), NVML_FIELD (a counter of GPU 0, which is the
   length of the file NVML_COUNTED and grows by NVML_GROWS with each reading), NVML_HANGS (the library never answers),
   NVML_UNSAID (the error by which GPU 0 answers what not every GPU can say), NVML_RECOVERY (the recovery action of GPU 0),
   NVML_FABRIC and NVML_FABRIC_STATUS (how far GPU 0 is
   registered with the fabric, and by what error; NVML_FABRIC_READINGS: from that reading on it is, by the file NVML_COUNTED). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };
typedef void *Device;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char address[32]; } Pci;

static unsigned setting(const char *name, unsigned otherwise) {
  const char *text = getenv(name);
  return text ? (unsigned)strtoul(text, 0, 10) : otherwise;
}
static unsigned number(Device device) { return (unsigned)(unsigned long)device - 1; }
static unsigned is(const char *name, Device device) { return setting(name, 999) == number(device); }
static int said(Device device) { return number(device) ? OK : (int)setting("NVML_UNSAID", OK); }

const char *nvmlErrorString(int code) {
  return code == GPU_IS_LOST ? "GPU is lost" : code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Error";
}
int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  if (setting("NVML_HANGS", 0)) pause();
  return setting("NVML_DEAD", 0) ? DRIVER_NOT_LOADED : OK;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "580.95.05"); return OK; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = setting("NVML_GPUS", 8); return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
  *device = (Device)(unsigned long)(index + 1);
  return is("NVML_LOST", *device) ? GPU_IS_LOST : OK;
}
int nvmlDeviceGetName(Device device, char *text, unsigned size) { (void)device; snprintf(text, size, "NVIDIA H100 80GB HBM3"); return OK; }
int nvmlDeviceGetUUID(Device device, char *text, unsigned size) { snprintf(text, size, "GPU-%u", number(device)); return OK; }
int nvmlDeviceGetSerial(Device device, char *text, unsigned size) { snprintf(text, size, "16533230%05u", number(device)); return said(device); }
int nvmlDeviceGetPciInfo_v3(Device device, Pci *pci) {
  memset(pci, 0, sizeof *pci);
  snprintf(pci->address, sizeof pci->address, "00000000:%02X:00.0", 0x53 + number(device));
  return OK;
}
int nvmlDeviceGetTotalEccErrors(Device device, int kind, int counter, unsigned long long *count) {
  (void)counter;
  *count = kind == 1 && is("NVML_ECC", device) ? 2 : 0;
  return said(device);
}
int nvmlDeviceGetRemappedRows(Device device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending, unsigned *failed) {
  *correctable = *uncorrectable = 0;
  *pending = is("NVML_REMAP_PENDING", device);
  *failed = is("NVML_REMAP_FAILED", device);
  return said(device);
}
int nvmlDeviceGetNvLinkState(Device device, unsigned link, unsigned *active) {
  if (setting("NVML_NO_LINKS", 0)) return NOT_SUPPORTED;
  if (getenv("NVML_LINKS_AFTER") && access(getenv("NVML_LINKS_AFTER"), F_OK)) *active = 0;
  else *active = number(device) > 0 || link < setting("NVML_LINKS", 18);
  return link < 18 ? said(device) : INVALID_ARGUMENT;
}
static unsigned long long counted(void) {
  FILE *file = fopen(getenv("NVML_COUNTED"), "a");
  for (unsigned left = setting("NVML_GROWS", 1); left; left--) fputc('.', file);
  long total = ftell(file);
  fclose(file);
  return total;
}
typedef struct { unsigned field, scope; long long time, latency; unsigned kind; int result; unsigned long long value; } Field;
int nvmlDeviceGetFieldValues(Device device, int count, Field *fields) {
  for (int at = 0; at < count; at++) {
    fields[at].result = fields[at].field == 230 && getenv("NVML_NO_RECOVERY") ? NOT_SUPPORTED : OK;
    fields[at].value = number(device) ? 0 : fields[at].field == 230 ? setting("NVML_RECOVERY", 0) : fields[at].field == setting("NVML_FIELD", 0) ? counted() : 0;
  }
  return OK;
}
int nvmlDeviceGetCurrentClocksEventReasons(Device device, unsigned long long *reasons) {
  *reasons = number(device) ? 0 : setting("NVML_REASONS", 0);
  return said(device);
}
int nvmlDeviceGetSramEccErrorStatus(Device device, unsigned *status) {
  status[24] = is("NVML_SRAM", device);
  return OK;
}
typedef struct { unsigned version; unsigned char cluster[16]; int status; unsigned clique; unsigned char state; unsigned health; } Fabric;
int nvmlDeviceGetGpuFabricInfoV(Device device, Fabric *fabric) {
  if (fabric->version != 0x02000024) return INVALID_ARGUMENT;
  unsigned whole = number(device) || (getenv("NVML_FABRIC_READINGS") && counted() >= setting("NVML_FABRIC_READINGS", 0));
  fabric->state = whole ? 3 : setting("NVML_FABRIC", 3);
  fabric->status = whole ? 0 : (int)setting("NVML_FABRIC_STATUS", 0);
  return said(device);
}
int nvmlDeviceGetMigMode(Device device, unsigned *current, unsigned *pending) {
  (void)device;
  *current = *pending = setting("NVML_MIG", 0);
  return (int)setting("NVML_MIG_UNSAID", OK);
}
