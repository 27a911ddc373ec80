/**
 * The body of Prometheus remote_write 1.0: the message `prometheus.WriteRequest` in protobuf, compressed with Snappy.
 *
 * See https://prometheus.io/docs/specs/remote_write_spec/ and `prompb/types.proto`. The message has three levels and four kinds of fields, so it is
 * written here.
 */
import { compress } from 'snappyjs';

import type { Batch } from './series.ts';

/** The headers that belong to the body. */
export const remoteWriteHeaders = {
    'content-type': 'application/x-protobuf',
    'content-encoding': 'snappy',
    'x-prometheus-remote-write-version': '0.1.0'
} as const;

/** Kinds of protobuf fields. */
const varintKind = 0;
const doubleKind = 1;
const bytesKind = 2;

/** Encodes a batch as a snappy block of Prometheus remote write 1.0. */
export function encodeRemoteWrite({ at, labels, values }: Batch): Buffer {
    const message = Buffer.concat(
        values.map(({ metric, instance, value }) => {
            const all: Readonly<Record<string, string>> = {
                ...labels,
                ...(metric.scope === null ? {} : { [metric.scope]: instance }),
                __name__: prometheusName(metric.name)
            };
            // The receiver wants them sorted by name.
            const names = Object.keys(all).sort((a, b) => (a < b ? -1 : 1));
            return field(
                1,
                Buffer.concat([
                    ...names.map((name) =>
                        field(
                            1,
                            Buffer.concat([
                                field(1, Buffer.from(name)),
                                field(2, Buffer.from(all[name] ?? ''))
                            ])
                        )
                    ),
                    field(2, sampleOf(value, at))
                ])
            );
        })
    );
    return Buffer.from(compress(message));
}

/** The name of a metric as Prometheus may have it: `disk.usedPercent` is `portico_disk_used_percent`. */
export function prometheusName(metric: string): string {
    return `portico_${metric.replaceAll('.', '_').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
}

function sampleOf(value: number, at: number): Buffer {
    const double = Buffer.alloc(8);
    double.writeDoubleLE(value);
    return Buffer.concat([varint((1 << 3) | doubleKind), double, varint((2 << 3) | varintKind), varint(at)]);
}

function field(number: number, bytes: Buffer): Buffer {
    return Buffer.concat([varint((number << 3) | bytesKind), varint(bytes.length), bytes]);
}

/** A positive whole number, seven bits in each byte, the lowest first. */
function varint(value: number): Buffer {
    const bytes: number[] = [];
    let rest = value;
    while (rest >= 0x80) {
        bytes.push((rest % 0x80) | 0x80);
        rest = Math.floor(rest / 0x80);
    }
    bytes.push(rest);
    return Buffer.from(bytes);
}
