/** The families of hardware, of pressure, and of uptime checks. */
import type { Extras, Reading } from '../sampling/sampler.ts';
import { counter, type Family, gauge, type Point } from './family.ts';

const daySeconds = 86_400;

/** Lists the families of pressure, sensors and arrays of disks. */
export function listHardware({ pressure, sensors, raids }: Reading): Family[] {
    const perSensor = (kind: string): readonly Point[] =>
        sensors.filter((each) => each.kind === kind).map(({ name, value }) => [{ sensor: name }, value]);
    return [
        counter(
            'pressure_waiting_seconds',
            'Time in which at least one task waited for it.',
            Object.entries(pressure ?? {}).map(([resource, microseconds]) => [
                { resource },
                microseconds / 1e6
            ])
        ),
        gauge('sensor_temperature_celsius', 'What a sensor measures.', perSensor('temperature')),
        gauge('sensor_fan_rpm', 'Turns of a fan in a minute.', perSensor('fan')),
        gauge(
            'raid_disks_wanted',
            'Disks that an array should have.',
            raids.map(({ name, wanted }) => [{ array: name }, wanted])
        ),
        gauge(
            'raid_disks_working',
            'Disks of an array that work.',
            raids.map(({ name, working }) => [{ array: name }, working])
        )
    ];
}

/** Lists the families of drives, graphics processors and uptime checks. */
export function listExtras({ drives, gpus, checks }: Extras): Family[] {
    const perDrive = (read: (drive: (typeof drives)[number]) => number | null): readonly Point[] =>
        drives.map((drive) => [{ drive: drive.name }, read(drive)]);
    const perGpu = (read: (gpu: (typeof gpus)[number]) => number | null): readonly Point[] =>
        gpus.map((gpu) => [{ gpu: gpu.name }, read(gpu)]);
    const perCheck = (read: (check: (typeof checks)[number]) => number | null): readonly Point[] =>
        checks.map((check) => [{ check: check.name }, read(check)]);
    const scale = (value: number | null, factor: number): number | null =>
        value === null ? null : value * factor;
    return [
        gauge(
            'drive_wear_ratio',
            'Used part of the life of a drive.',
            perDrive(({ wear }) => scale(wear, 0.01))
        ),
        gauge(
            'drive_temperature_celsius',
            'Temperature of a drive.',
            perDrive((drive) => drive.temperature)
        ),
        gauge(
            'gpu_usage_ratio',
            'Part of the time in which a graphics processor did anything.',
            perGpu(({ usage }) => scale(usage, 0.01))
        ),
        gauge(
            'gpu_memory_used_bytes',
            'Used memory of a graphics processor.',
            perGpu(({ memoryUsed }) => memoryUsed)
        ),
        gauge(
            'gpu_temperature_celsius',
            'Temperature of a graphics processor.',
            perGpu((gpu) => gpu.temperature)
        ),
        gauge(
            'gpu_power_watts',
            'Power that a graphics processor draws.',
            perGpu(({ power }) => power)
        ),
        gauge(
            'check_up',
            'Whether an uptime check is up or degraded.',
            perCheck(({ up }) => up)
        ),
        gauge(
            'check_latency_seconds',
            'Time of the last good try of an uptime check.',
            perCheck(({ latencyMs }) => scale(latencyMs, 0.001))
        ),
        gauge(
            'check_certificate_left_seconds',
            'Time until the certificate ends that an uptime check saw.',
            perCheck(({ certificateDays }) => scale(certificateDays, daySeconds))
        )
    ];
}
