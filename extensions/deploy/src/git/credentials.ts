/** What git is let in with, and how it is told: by its environment, for one host. */
import { isIP } from 'node:net';

import type { Address } from './remote/address.ts';

/** What a host is shown. */
export type Credentials =
    | { readonly kind: 'token'; readonly username: string; readonly token: string }
    | { readonly kind: 'key'; readonly privateKey: string; readonly knownHosts: string };

/** The header that shows a token over HTTP; none without one. */
export function authorizationOf(credentials: Credentials | null): { readonly authorization?: string } {
    return credentials?.kind === 'token'
        ? {
              authorization: `Basic ${Buffer.from(`${credentials.username}:${credentials.token}`).toString('base64')}`
          }
        : {};
}

/** How git reaches one repository. */
export interface Access {
    readonly address: Address;
    /** Addresses of the host that were checked. */
    readonly addresses: readonly string[];
    readonly credentials: Credentials | null;
}

/** The name of the private file with the key of a connection. */
export const keyFile = 'key';

/** Settings of git that hold whatever it does. */
const fixed: readonly (readonly [string, string])[] = [
    ['core.hooksPath', '/dev/null'],
    ['core.fsmonitor', 'false'],
    ['credential.helper', ''],
    ['gc.auto', '0'],
    ['http.followRedirects', 'false'],
    ['http.proxy', ''],
    ['http.lowSpeedLimit', '1000'],
    ['http.lowSpeedTime', '30'],
    ['safe.directory', '*'],
    ['submodule.recurse', 'false']
];

/** The environment of git: nothing of the machine's or the user's configuration, no question, and only the protocol of the address. */
export function gitEnvironment(access: Access | null): Readonly<Record<string, string>> {
    const settings = [...fixed, ...(access === null ? [] : settingsOf(access))];
    return {
        HOME: '/nonexistent',
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_CONFIG_SYSTEM: '/dev/null',
        GIT_ATTR_NOSYSTEM: '1',
        GIT_TERMINAL_PROMPT: '0',
        GIT_ASKPASS: '/bin/false',
        SSH_ASKPASS: '/bin/false',
        GIT_ALLOW_PROTOCOL: access === null ? 'none' : access.address.scheme,
        GIT_PROTOCOL_FROM_USER: '0',
        GIT_NO_REPLACE_OBJECTS: '1',
        GIT_CONFIG_COUNT: String(settings.length),
        ...Object.fromEntries(
            settings.flatMap(([key, value], index) => [
                [`GIT_CONFIG_KEY_${index}`, key],
                [`GIT_CONFIG_VALUE_${index}`, value]
            ])
        ),
        ...(access?.address.scheme === 'ssh'
            ? { GIT_SSH_VARIANT: 'ssh', GIT_SSH_COMMAND: ['ssh', ...sshOptions(access)].join(' ') }
            : {})
    };
}

function settingsOf({ address, addresses, credentials }: Access): readonly (readonly [string, string])[] {
    if (address.scheme === 'ssh') {
        return [];
    }
    const { scheme, host, port } = address;
    const name = isIP(host) === 6 ? `[${host}]` : host;
    const listed = addresses.map((each) => (isIP(each) === 6 ? `[${each}]` : each)).join(',');
    return [
        ...(isIP(host) === 0 ? ([['http.curloptResolve', `${host}:${port}:${listed}`]] as const) : []),
        ...(credentials?.kind === 'token'
            ? ([
                  [
                      `http.${scheme}://${name}:${port}/.extraHeader`,
                      `Authorization: ${authorizationOf(credentials).authorization}`
                  ]
              ] as const)
            : [])
    ];
}

/**
 * Options of ssh for one host, at the address that was checked. git gives them to a shell: each word is fixed, a number, or was checked to be an
 * address, a name of a host or a path of the plugin's own.
 */
export function sshOptions({ address, addresses, credentials }: Access): readonly string[] {
    const [first = ''] = addresses;
    if (isIP(first) === 0 || !/^[a-z0-9.:-]+$/.test(address.host)) {
        throw new TypeError('The address of the host was not checked');
    }
    const options = {
        BatchMode: 'yes',
        HostName: first,
        HostKeyAlias: address.host,
        CheckHostIP: 'no',
        ConnectTimeout: '15',
        PreferredAuthentications: 'publickey',
        ForwardAgent: 'no',
        ClearAllForwardings: 'yes',
        PermitLocalCommand: 'no',
        UpdateHostKeys: 'no',
        GlobalKnownHostsFile: '/dev/null',
        StrictHostKeyChecking: 'accept-new',
        UserKnownHostsFile: credentials?.kind === 'key' ? credentials.knownHosts : '/dev/null',
        IdentitiesOnly: 'yes',
        IdentityAgent: 'none',
        IdentityFile: credentials?.kind === 'key' ? keyFile : '/dev/null'
    };
    return [
        '-F',
        '/dev/null',
        ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    ];
}
