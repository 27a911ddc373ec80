/** What a type of DNS provider is: its form, as data. */

/** A field of the credentials. */
export interface ProviderField {
    readonly name: string;
    readonly label: string;
    /** Not to be shown while it is typed. No field is ever read back, secret or not. */
    readonly secret: boolean;
    readonly required: boolean;
    readonly help: string;
    /** The only values there are; any when it is left out. */
    readonly options?: readonly string[];
}

/** A type of provider. */
export interface ProviderType {
    readonly type: string;
    readonly label: string;
    /** Needs no other program. */
    readonly builtIn: boolean;
    readonly fields: readonly ProviderField[];
}

/** The command that brings all other types, and how it is installed. */
export const legoTool = { tool: 'lego', install: 'apt-get install lego' } as const;

/** The type that needs no other program. */
export const rfc2136Type: ProviderType = {
    type: 'rfc2136',
    label: 'Dynamic updates (RFC 2136: BIND, Knot, PowerDNS and others)',
    builtIn: true,
    fields: [
        {
            name: 'nameserver',
            label: 'Name server',
            secret: false,
            required: true,
            help: "The zone's primary: a name or an address, with a port unless it is 53"
        },
        {
            name: 'zone',
            label: 'Zone',
            secret: false,
            required: false,
            help: 'Found by asking the name server unless it is given'
        },
        {
            name: 'keyName',
            label: 'Key name',
            secret: false,
            required: true,
            help: 'The name of the TSIG key as the name server knows it'
        },
        { name: 'keySecret', label: 'Key', secret: true, required: true, help: 'The TSIG key, Base64' },
        {
            name: 'algorithm',
            label: 'Algorithm',
            secret: false,
            required: false,
            help: 'hmac-sha256 unless it is given',
            options: ['hmac-sha256', 'hmac-sha512']
        }
    ]
};
