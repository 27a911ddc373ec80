/** DNS messages as bytes (RFC 1035, section 4), as far as finding a zone, reading TXT records and updating them needs. Pure. */

/** Numbers of record types (RFC 1035, section 3.2.2). */
export const recordTypes = { A: 1, NS: 2, CNAME: 5, SOA: 6, TXT: 16, AAAA: 28, TSIG: 250, ANY: 255 } as const;
/** A record type by name. */
export type RecordType = keyof typeof recordTypes;

/** Classes of records. In an update, the class says what to do with the record (RFC 2136, section 2.5). */
export const classes = { in: 1, none: 254, any: 255 } as const;

const query = 0;
const update = 5;

/** Limits, because an answer may be hostile. */
const mostRecords = 200;
const mostPointers = 32;
const longestName = 255;

/** A message that cannot be read. */
export class DnsFormatError extends Error {}

/** A question of a message (RFC 1035, section 4.1.2). */
export interface Question {
    /** Lower-case, without final dot. */
    readonly name: string;
    readonly type: number;
    readonly class: number;
}

/** A resource record (RFC 1035, section 4.1.3). */
export interface DnsRecord extends Question {
    readonly ttl: number;
    readonly data: Buffer;
    /** Where the record and its data begin in the message: names inside of the data may point elsewhere in it. */
    readonly at: number;
    readonly dataAt: number;
}

/** A message that was read. */
export interface Message {
    readonly id: number;
    readonly isReply: boolean;
    readonly authoritative: boolean;
    readonly truncated: boolean;
    readonly rcode: number;
    readonly questions: readonly Question[];
    readonly answers: readonly DnsRecord[];
    readonly authority: readonly DnsRecord[];
    readonly additional: readonly DnsRecord[];
    readonly bytes: Buffer;
}

const u16 = (value: number): Buffer => {
    const bytes = Buffer.alloc(2);
    bytes.writeUInt16BE(value);
    return bytes;
};

const u32 = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return bytes;
};

/** A name on the wire, lower-case and without compression. @throws DnsFormatError when it is none */
export function encodeName(name: string): Buffer {
    const labels = name === '' || name === '.' ? [] : name.replace(/\.$/, '').toLowerCase().split('.');
    const parts = labels.map((label) => {
        const bytes = Buffer.from(label, 'latin1');
        if (bytes.length === 0 || bytes.length > 63 || /[^\x21-\x7e]/.test(label)) {
            throw new DnsFormatError(`${JSON.stringify(name)} is not a DNS name`);
        }
        return Buffer.concat([Buffer.from([bytes.length]), bytes]);
    });
    const encoded = Buffer.concat([...parts, Buffer.from([0])]);
    if (encoded.length > longestName) {
        throw new DnsFormatError(`${JSON.stringify(name)} is too long for a DNS name`);
    }
    return encoded;
}

/** The data of a TXT record: strings of at most 255 bytes. */
export function encodeText(text: string): Buffer {
    const bytes = Buffer.from(text);
    const parts: Buffer[] = [];
    for (let at = 0; at === 0 || at < bytes.length; at += 255) {
        const part = bytes.subarray(at, at + 255);
        parts.push(Buffer.from([part.length]), part);
    }
    return Buffer.concat(parts);
}

/** A record in wire format. */
export function encodeRecord({
    name,
    type,
    class: dnsClass,
    ttl,
    data
}: Pick<DnsRecord, 'name' | 'type' | 'class' | 'ttl' | 'data'>): Buffer {
    return Buffer.concat([encodeName(name), u16(type), u16(dnsClass), u32(ttl), u16(data.length), data]);
}

/** Writes a question. @param recurse - true for a resolver, false for the server that owns the name */
export function encodeQuery(id: number, name: string, type: RecordType, recurse: boolean): Buffer {
    return Buffer.concat([
        u16(id),
        u16((query << 11) | (recurse ? 0x0100 : 0)),
        u16(1),
        u16(0),
        u16(0),
        u16(0),
        encodeName(name),
        u16(recordTypes[type]),
        u16(classes.in)
    ]);
}

/** An update of one zone, without its signature. */
export function encodeUpdate(
    id: number,
    zone: string,
    changes: readonly Parameters<typeof encodeRecord>[0][]
): Buffer {
    return Buffer.concat([
        u16(id),
        u16(update << 11),
        u16(1),
        u16(0),
        u16(changes.length),
        u16(0),
        encodeName(zone),
        u16(recordTypes.SOA),
        u16(classes.in),
        ...changes.map(encodeRecord)
    ]);
}

/** Reads a message. @throws DnsFormatError when the bytes are no whole message */
export function decodeMessage(bytes: Buffer): Message {
    try {
        const flags = bytes.readUInt16BE(2);
        const counts = [4, 6, 8, 10].map((at) => bytes.readUInt16BE(at));
        const [questionCount = 0, ...sections] = counts;
        if (counts.reduce((sum, count) => sum + count, 0) > mostRecords) {
            throw new DnsFormatError('the message has too many records');
        }
        let at = 12;
        const questions = Array.from({ length: questionCount }, () => {
            const { name, next } = decodeName(bytes, at);
            at = next + 4;
            return { name, type: bytes.readUInt16BE(next), class: bytes.readUInt16BE(next + 2) };
        });
        const [answers = [], authority = [], additional = []] = sections.map((count) =>
            Array.from({ length: count }, () => {
                const record = decodeRecord(bytes, at);
                at = record.dataAt + record.data.length;
                return record;
            })
        );
        return {
            id: bytes.readUInt16BE(0),
            isReply: (flags & 0x8000) !== 0,
            authoritative: (flags & 0x0400) !== 0,
            truncated: (flags & 0x0200) !== 0,
            rcode: flags & 15,
            questions,
            answers,
            authority,
            additional,
            bytes
        };
    } catch (error) {
        throw error instanceof DnsFormatError
            ? error
            : new DnsFormatError('the message is cut short', { cause: error });
    }
}

function decodeRecord(bytes: Buffer, at: number): DnsRecord {
    const { name, next } = decodeName(bytes, at);
    const length = bytes.readUInt16BE(next + 8);
    const dataAt = next + 10;
    if (dataAt + length > bytes.length) {
        throw new DnsFormatError('the message is cut short');
    }
    return {
        name,
        type: bytes.readUInt16BE(next),
        class: bytes.readUInt16BE(next + 2),
        ttl: bytes.readUInt32BE(next + 4),
        data: bytes.subarray(dataAt, dataAt + length),
        at,
        dataAt
    };
}

/** Reads a name at a place of a message; returns it with the place after it. Pointers may only lead backwards, so that they cannot form a circle. */
export function decodeName(bytes: Buffer, at: number): { readonly name: string; readonly next: number } {
    const labels: string[] = [];
    let next: number | null = null;
    let place = at;
    let length = 0;
    for (let pointers = 0; ;) {
        const size = bytes.readUInt8(place);
        if (size >= 0xc0) {
            const target = bytes.readUInt16BE(place) & 0x3fff;
            next ??= place + 2;
            pointers += 1;
            if (target >= place || pointers > mostPointers) {
                throw new DnsFormatError('a name points to itself');
            }
            place = target;
            continue;
        }
        if (size > 63) {
            throw new DnsFormatError('a name is malformed');
        }
        place += 1;
        if (size === 0) {
            return { name: labels.join('.').toLowerCase(), next: next ?? place };
        }
        length += size + 1;
        if (place + size > bytes.length || length > longestName) {
            throw new DnsFormatError('a name is too long or cut short');
        }
        // A dot inside a label would look like the end of the label, so it is escaped as in a zone file.
        labels.push(bytes.toString('latin1', place, place + size).replace(/[.\\]/g, '\\$&'));
        place += size;
    }
}

/** The texts of TXT records, one for each record: the strings of a record are joined. */
export function textOf({ data }: Pick<DnsRecord, 'data'>): string {
    const parts: Buffer[] = [];
    for (let at = 0; at < data.length; at += 1 + data.readUInt8(at)) {
        parts.push(data.subarray(at + 1, at + 1 + data.readUInt8(at)));
    }
    return Buffer.concat(parts).toString('utf8');
}

/** The name that an NS or CNAME record holds. */
export function targetOf(message: Message, record: DnsRecord): string {
    return decodeName(message.bytes, record.dataAt).name;
}
