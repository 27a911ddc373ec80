/** What a provider's fields must be: its type's own, each with a value that the writer can use. */
import type { Invalid } from '../../platform/errors.ts';
import { readServer } from './challenges/name-servers.ts';
import { DnsFormatError, encodeName } from './rfc2136/dns-message.ts';
import type { Credentials } from './store.ts';
import { type ProviderType, rfc2136Type } from './types.ts';

/** What is wrong with credentials of this type. */
export function checkCredentials(type: ProviderType, credentials: Credentials): readonly Invalid[] {
    const faults: Invalid[] = [];
    const add = (name: string, message: string): void =>
        void faults.push({ path: `credentials.${name}`, message: `credentials.${name} ${message}` });
    for (const [name, value] of Object.entries(credentials)) {
        const field = type.fields.find((each) => each.name === name);
        if (field === undefined) {
            add(name, `is no field of the type ${type.type}`);
        } else if (value === '' || /\0/.test(value) || !value.isWellFormed()) {
            add(name, 'must be a text');
        } else if (field.options !== undefined && !field.options.includes(value)) {
            add(name, `must be one of ${field.options.join(', ')}`);
        }
    }
    for (const { name } of type.fields.filter(
        (field) => field.required && !Object.hasOwn(credentials, field.name)
    )) {
        add(name, 'is required');
    }
    if (type.type === rfc2136Type.type) {
        for (const [name, good, message] of rfc2136Checks) {
            const value = credentials[name];
            if (value !== undefined && value !== '' && !good(value)) {
                add(name, message);
            }
        }
    }
    return faults;
}

/** Whether a text is a plain DNS name of a domain, with a wildcard or without. */
export function isDomain(text: string): boolean {
    return (
        text.length <= 253 &&
        /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i.test(
            text
        )
    );
}

const rfc2136Checks: readonly (readonly [string, (value: string) => boolean, string])[] = [
    [
        'nameserver',
        (value) => readServer(value) !== null,
        'must be a name or an address, with a port or without'
    ],
    ['zone', isName, 'must be a DNS name'],
    ['keyName', isName, 'must be a DNS name'],
    [
        'keySecret',
        (value) =>
            /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$|^(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/.test(
                value
            ),
        'must be Base64'
    ]
];

function isName(value: string): boolean {
    try {
        return encodeName(value).length > 1;
    } catch (error) {
        if (error instanceof DnsFormatError) {
            return false;
        }
        throw error;
    }
}
