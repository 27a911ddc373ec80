/** An address that a proxy sends to. */
export interface UpstreamAddress {
    readonly scheme: 'http' | 'https' | 'h2c';
    /** As the engine dials it: `host:port`, `[v6]:port` or `unix/<absolute path>`. */
    readonly dial: string;
    readonly unix: boolean;
}

const form = /^(?:(https?|h2c):\/\/)?((?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})\/?$/;

/** Reads `host:port`, `http://…`, `https://…`, `h2c://…` or `unix/<absolute path>`; null for anything else. */
export const parseUpstream = (address: string): UpstreamAddress | null => {
    if (address.startsWith('unix//')) {
        return { scheme: 'http', dial: address, unix: true };
    }

    const match = form.exec(address);
    if (match?.[2] === undefined) {
        return null;
    }

    return { scheme: (match[1] ?? 'http') as UpstreamAddress['scheme'], dial: match[2], unix: false };
};

/** As `parseUpstream`, for addresses that were validated before. @throws Error for any other text */
export const upstreamAddress = (address: string): UpstreamAddress => {
    const parsed = parseUpstream(address);
    if (parsed === null) {
        throw new Error(`not an upstream address: ${JSON.stringify(address)}`);
    }

    return parsed;
};
