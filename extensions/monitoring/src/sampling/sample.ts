/** One sample as answers have it: values of now, and rates of counters. An unknown value is null, never zero. */
import { joi, type Value } from '@portico/sdk';

const number = joi.number().required();
const known = joi.number().allow(null).required();
const text = joi.string().allow('').required();

const io = {
    readBytesPerSecond: known,
    writeBytesPerSecond: known,
    readsPerSecond: known,
    writesPerSecond: known,
    utilisation: known.description('Percent of the time during which a request was under way')
};

const cpuSchema = joi.object({
    cores: number,
    usage: known,
    user: known,
    system: known,
    iowait: known,
    steal: known,
    perCore: joi
        .array()
        .items(joi.object({ core: joi.string().required(), usage: known }))
        .required()
});

const diskSchema = joi.object({
    mount: text,
    source: text,
    type: text,
    readOnly: joi.boolean().required(),
    device: joi.string().allow(null).required(),
    total: known,
    used: known,
    available: known,
    usedPercent: known,
    inodes: known,
    inodesUsed: known,
    inodesUsedPercent: known,
    ...io
});
const deviceSchema = joi.object({ name: text, ...io });
const interfaceSchema = joi.object({
    name: text,
    rxBytesPerSecond: known,
    txBytesPerSecond: known,
    rxPacketsPerSecond: known,
    txPacketsPerSecond: known,
    rxErrorsPerSecond: known,
    txErrorsPerSecond: known,
    rxDroppedPerSecond: known,
    txDroppedPerSecond: known
});
const containerSchema = joi.object({
    id: text,
    name: text,
    runtime: text,
    cpu: known.description('Percent of one processor'),
    memory: known,
    memoryLimit: known,
    memoryPercent: known.description('Of the limit; without one, of the machine'),
    readBytesPerSecond: known,
    writeBytesPerSecond: known,
    processes: known
});

/** The shape of a sample, in bytes, percent and seconds. */
export const sampleSchema = joi.object({
    at: joi.string().isoDate().required(),
    intervalSeconds: known.description('Since the sample before; rates are averages over it'),
    uptimeSeconds: known,
    cpu: cpuSchema.allow(null).required(),
    load: joi
        .object({
            one: number,
            five: number,
            fifteen: number,
            perCore: known.description("The five minutes' load for each processor")
        })
        .allow(null)
        .required(),
    memory: joi
        .object({
            total: number,
            used: number,
            available: number,
            cached: number,
            buffers: number,
            usedPercent: known
        })
        .allow(null)
        .required(),
    swap: joi.object({ total: number, used: number, usedPercent: known }).allow(null).required(),
    processes: joi.object({ running: known, blocked: known, tasks: known }).required(),
    disks: joi.array().items(diskSchema).required(),
    devices: joi.array().items(deviceSchema).required(),
    interfaces: joi.array().items(interfaceSchema).required(),
    containers: joi.array().items(containerSchema).required()
});

/** A sample. */
export type Sample = Value<typeof sampleSchema>;
/** The processors in a sample. */
export type CpuView = NonNullable<Sample['cpu']>;
/** One disk in a sample. */
export type DiskView = Sample['disks'][number];
