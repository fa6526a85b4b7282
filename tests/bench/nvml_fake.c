/* An NVML of two GPUs, the second lost; with OLD as a driver of 2016 had it.  NVIDIA's header checks its prototypes. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#include <string.h>

struct nvmlDevice_st {
    int lost;
};
static struct nvmlDevice_st gpus[2] = {{0}, {1}};
static const char *bus_ids[2] = {"00000000:1B:00.0", "00000000:2B:00.0"};

static nvmlReturn_t text(char *place, unsigned int length, const char *words)
{
    if (length <= strlen(words))
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(place, words);
    return NVML_SUCCESS;
}

static nvmlReturn_t handle(unsigned int index, nvmlDevice_t *device)
{
    if (index > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &gpus[index];
    return index ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

static nvmlReturn_t handle_by_bus(const char *bus_id, nvmlDevice_t *device)
{
    for (unsigned int i = 0; i < 2; ++i)
        if (!strcmp(bus_id, bus_ids[i]))
            return handle(i, device);
    return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t number(nvmlDevice_t device, unsigned int *place, unsigned int value)
{
    *place = value;
    return device == &gpus[0] ? NVML_SUCCESS : NVML_ERROR_GPU_IS_LOST;
}

const char *nvmlErrorString(nvmlReturn_t code)
{
    return code == NVML_ERROR_NOT_FOUND ? "Not Found" : code == NVML_ERROR_GPU_IS_LOST ? "GPU is lost" : "Invalid Argument";
}

#ifdef OLD
nvmlReturn_t nvmlInit(void) { return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) { *count = 2; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) { return handle(index, device); }
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device) { return handle_by_bus(id, device); }
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    *reasons = 0x48;
    return device->lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *found)
#else
nvmlReturn_t nvmlInit_v2(void) { return NVML_SUCCESS; }
nvmlReturn_t nvmlInit(void) { return NVML_ERROR_UNKNOWN; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) { return handle(index, device); }
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device) { return handle_by_bus(id, device); }
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *reasons)
{
    *reasons = 0x100000004ULL;
    return device->lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    memset(pci, 0xff, sizeof *pci);
    return text(pci->busId, sizeof pci->busId, bus_ids[device - gpus]);
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    *pending = 1;
    return number(device, current, 0);
}
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t policy, nvmlViolationTime_t *time)
{
    time->referenceTime = 7;
    time->violationTime = policy == NVML_PERF_POLICY_POWER ? 5000000000ULL : 0;
    return device->lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    for (int i = 0; i < count; ++i) {
        values[i].nvmlReturn = NVML_SUCCESS;
        if (values[i].fieldId == NVML_FI_DEV_POWER_INSTANT && values[i].scopeId == 0) {
            values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
            values[i].value.uiVal = 612500;
        } else if (values[i].fieldId == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION) {
            values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
            values[i].value.ullVal = 1ULL << 40;
        } else if (values[i].fieldId == NVML_FI_DEV_MEMORY_TEMP) {
            values[i].valueType = NVML_VALUE_TYPE_SIGNED_INT;
            values[i].value.siVal = -3;
        } else {
            values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        }
    }
    return device->lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *found)
#endif
{
    if (device->lost)
        return NVML_ERROR_GPU_IS_LOST;
    if (*count < 3) {
        *count = 3;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    *count = 3;
    for (unsigned int i = 0; i < 3; ++i) {
        memset(&found[i], 0xff, sizeof found[i]);
        found[i].pid = 100 + i;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *place, unsigned int length) { return text(place, length, "580.65.06"); }
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { *version = 13000; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) { return handle(strcmp(uuid, "GPU-1") != 0, device); }
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *place, unsigned int length)
{
    return device->lost ? NVML_ERROR_GPU_IS_LOST : text(place, length, "NVIDIA H200");
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *place, unsigned int length)
{
    return device->lost ? NVML_ERROR_GPU_IS_LOST : text(place, length, "GPU-1");
}
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *place, unsigned int length)
{
    return device->lost ? NVML_ERROR_GPU_IS_LOST : text(place, length, "96.00");
}
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    *current = NVML_FEATURE_ENABLED;
    *pending = NVML_FEATURE_DISABLED;
    return device->lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
    *mode = NVML_COMPUTEMODE_EXCLUSIVE_PROCESS;
    return device->lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    *mode = NVML_FEATURE_ENABLED;
    return device->lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy)
{
    *energy = 1ULL << 40;
    return device->lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
    return number(device, clock, type == NVML_CLOCK_SM ? 1980 : type == NVML_CLOCK_MEM ? 3201 : 0);
}
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
    return number(device, clock, type == NVML_CLOCK_GRAPHICS ? 1830 : 0);
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *degrees)
{
    return number(device, degrees, sensor == NVML_TEMPERATURE_GPU ? 58 : 0);
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power) { return number(device, power, 580000); }
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *limit) { return number(device, limit, 650000); }
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *limit)
{
    return number(device, limit, 700000);
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *link) { return number(device, link, 4); }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *link) { return number(device, link, 8); }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *link) { return number(device, link, 5); }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *link) { return number(device, link, 16); }
