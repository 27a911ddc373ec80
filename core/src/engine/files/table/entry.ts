/**
 * An entry of the table: the name of the one file in a site name's folder, `<state>,<tls>,<profile>[,<dial>]`, as in
 * `on,demand,1f0c9a7be2d45386,127.0.0.1:3000`. It holds everything that may change without a reload. Right after a load, `~<profile>[,<dial>]`
 * behind it says what a configuration does that does not have the profile yet.
 */
export interface TableEntry {
    readonly state: 'on' | 'off' | 'maintenance';
    /** `demand`: the engine may get a certificate for the name when one is asked for. `certificate`: it has one. `none`: not served on https. */
    readonly tls: 'none' | 'demand' | 'certificate';
    /** 16 hexadecimal digits. */
    readonly profile: string;
    /** Where the profile's proxy sends to; null when the profile says it. */
    readonly dial: string | null;
}

const form =
    /^(on|off|maintenance),(none|demand|certificate),([0-9a-f]{16})(?:,([A-Za-z0-9._:[\]-]+))?(?:~[0-9a-f]{16}(?:,[A-Za-z0-9._:[\]-]+)?)?$/;

/** A file name has at most 255 bytes. */
const longest = 255;

/** The file name of an entry. @throws Error when it would be no valid one */
export const entryText = (entry: TableEntry): string => {
    const text = `${entry.state},${entry.tls},${entry.profile}${entry.dial === null ? '' : `,${entry.dial}`}`;
    if (!isEntry(text)) {
        throw new Error(`not an entry of the table: ${JSON.stringify(text)}`);
    }

    return text;
};

/** Whether a file name is an entry. */
export const isEntry = (text: string): boolean => text.length <= longest && form.test(text);

/** Reads an entry; null when the text is none. */
export const parseEntry = (text: string): TableEntry | null => {
    const match = text.length <= longest ? form.exec(text) : null;
    return match === null
        ? null
        : {
              state: match[1] as TableEntry['state'],
              tls: match[2] as TableEntry['tls'],
              profile: match[3] ?? '',
              dial: match[4] ?? null
          };
};

/** Whether a name gets another profile. */
export const changesProfile = (from: string | null, to: string | null): boolean =>
    from !== null && to !== null && parseEntry(from)?.profile !== parseEntry(to)?.profile;

/** The new entry with what the former one does behind it; null where that is no way to serve, or too long. */
export const bridgeOf = (from: string, to: string): string | null => {
    const [former, latter] = [parseEntry(from), parseEntry(to)];
    if (former?.state !== 'on' || latter?.state !== 'on') {
        return null;
    }

    const text = `${to}~${former.profile}${former.dial === null ? '' : `,${former.dial}`}`;
    return isEntry(text) ? text : null;
};

/** Whether an address fits into an entry beside the longest of everything else. */
export const fitsEntry = (dial: string): boolean =>
    isEntry(`maintenance,certificate,0123456789abcdef,${dial}`);
