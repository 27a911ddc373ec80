/** One sample as answers have it: values of now, and rates of counters. An unknown value is null, never zero. */
import { joi, type Value } from '@portico/sdk';

const number = (label: string) => joi.number().required().label(label);
const known = (label: string) => joi.number().allow(null).required().label(label);
const percent = (label: string) => known(label).unit('percent');
const rate = (label: string) => known(label).unit('byte/second');
const text = (label: string) => joi.string().allow('').required().label(label);

const io = {
    readBytesPerSecond: rate('Read'),
    writeBytesPerSecond: rate('Written'),
    readsPerSecond: known('Reads per second'),
    writesPerSecond: known('Writes per second'),
    utilisation: percent('Busy').description('Share of the time during which a request was under way')
};

const cpuSchema = joi.object({
    cores: number('Processors'),
    usage: percent('In use'),
    user: percent('Programs'),
    system: percent('Kernel'),
    iowait: percent('Waiting for disks'),
    steal: percent('Taken by other guests').description(
        'Time that the host of this virtual machine gave to others'
    ),
    perCore: joi
        .array()
        .items(joi.object({ core: joi.string().required().label('Processor'), usage: percent('In use') }))
        .required()
        .label('Each processor')
});

const diskSchema = joi.object({
    mount: text('Mounted at'),
    source: text('Source'),
    type: text('File system'),
    readOnly: joi.boolean().required().label('Read only'),
    device: joi.string().allow(null).required().label('Device'),
    total: known('Size').unit('byte'),
    used: known('Used').unit('byte'),
    available: known('Free').unit('byte'),
    usedPercent: percent('Share used'),
    inodes: known('Inodes'),
    inodesUsed: known('Inodes used'),
    inodesUsedPercent: percent('Share of inodes used'),
    ...io
});
const deviceSchema = joi.object({ name: text('Device'), ...io });
const interfaceSchema = joi.object({
    name: text('Interface'),
    rxBytesPerSecond: rate('Received'),
    txBytesPerSecond: rate('Sent'),
    rxPacketsPerSecond: known('Packets received per second'),
    txPacketsPerSecond: known('Packets sent per second'),
    rxErrorsPerSecond: known('Receive errors per second'),
    txErrorsPerSecond: known('Send errors per second'),
    rxDroppedPerSecond: known('Received and dropped per second'),
    txDroppedPerSecond: known('Dropped before sending per second')
});
const containerSchema = joi.object({
    id: text('Id'),
    name: text('Name'),
    runtime: text('Engine'),
    cpu: percent('Processor').description('Of one processor'),
    memory: known('Memory').unit('byte'),
    memoryLimit: known('Memory limit').unit('byte'),
    memoryPercent: percent('Share of memory').description('Of the limit; without one, of the machine'),
    readBytesPerSecond: rate('Read'),
    writeBytesPerSecond: rate('Written'),
    rxBytesPerSecond: rate('Received').description("Null where it shares the machine's own network"),
    txBytesPerSecond: rate('Sent'),
    processes: known('Processes')
});
const checkSchema = joi.object({
    name: text('Check'),
    up: known('Up').description('0 when it is down, else 1; null while it is paused or was not tried'),
    latencyMs: known('Latency').unit('millisecond'),
    certificateDays: known('Days of the certificate').unit('day')
});
const sensorSchema = joi.object({
    name: text('Sensor'),
    temperature: known('Temperature').unit('°C'),
    fan: known('Fan').unit('rpm')
});
const driveSchema = joi.object({
    name: text('Drive'),
    wear: percent('Used up').description('Share of its life; drives of flash memory say so'),
    temperature: known('Temperature').unit('°C')
});
const gpuSchema = joi.object({
    name: text('Graphics processor'),
    usage: percent('In use'),
    memoryUsed: known('Memory used').unit('byte'),
    temperature: known('Temperature').unit('°C'),
    power: known('Power').unit('W')
});
const raidSchema = joi.object({
    name: text('Array'),
    missing: known('Missing disks').description('Disks that it should have and that do not work')
});

/** The shape of a sample, in bytes, percent and seconds. */
export const sampleSchema = joi.object({
    at: joi.string().isoDate().required().label('Taken'),
    intervalSeconds: known('Interval')
        .unit('second')
        .description('Since the sample before; rates are averages over it'),
    uptimeSeconds: known('Up for').unit('second'),
    cpu: cpuSchema.allow(null).required().label('Processors'),
    load: joi
        .object({
            one: number('Over 1 minute'),
            five: number('Over 5 minutes'),
            fifteen: number('Over 15 minutes'),
            perCore: known('For each processor').description("The five minutes' load for each processor")
        })
        .allow(null)
        .required()
        .label('Load'),
    memory: joi
        .object({
            total: number('Size').unit('byte'),
            used: number('Used').unit('byte'),
            available: number('Available').unit('byte'),
            cached: number('Cached files').unit('byte'),
            buffers: number('Buffers').unit('byte'),
            usedPercent: percent('Share used')
        })
        .allow(null)
        .required()
        .label('Memory'),
    swap: joi
        .object({
            total: number('Size').unit('byte'),
            used: number('Used').unit('byte'),
            usedPercent: percent('Share used')
        })
        .allow(null)
        .required()
        .label('Swap'),
    processes: joi
        .object({ running: known('Running'), blocked: known('Waiting for disks'), tasks: known('Threads') })
        .required()
        .label('Processes'),
    pressure: joi
        .object({ cpu: percent('Processors'), memory: percent('Memory'), io: percent('Disks') })
        .allow(null)
        .required()
        .label('Pressure')
        .description('Share of the time in which tasks waited for it'),
    disks: joi.array().items(diskSchema).required().label('Disks'),
    devices: joi.array().items(deviceSchema).required().label('Devices'),
    interfaces: joi.array().items(interfaceSchema).required().label('Network interfaces'),
    containers: joi.array().items(containerSchema).required().label('Containers'),
    sensors: joi.array().items(sensorSchema).required().label('Sensors'),
    drives: joi.array().items(driveSchema).required().label('Drives'),
    gpus: joi.array().items(gpuSchema).required().label('Graphics processors'),
    raids: joi.array().items(raidSchema).required().label('Arrays of disks'),
    checks: joi.array().items(checkSchema).required().label('Uptime checks')
});

/** What was measured at one moment, as the API shows it. */
export type Sample = Value<typeof sampleSchema>;
/** The processors in a sample. */
export type CpuView = NonNullable<Sample['cpu']>;
/** One disk in a sample. */
export type DiskView = Sample['disks'][number];
