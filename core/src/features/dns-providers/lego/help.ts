/** What the `lego` command knows of DNS providers, read from its own help: which there are, and which fields each one has. Pure. */
import type { ProviderField, ProviderType } from '../types.ts';

/**
 * Types that are not offered: one runs any program, one asks a person at a terminal, one keeps accounts in a file that is gone after
 * the run, and one is built in.
 */
const hidden = new Set(['exec', 'manual', 'acme-dns', 'rfc2136']);

/** The codes in the overview. */
export function readCodes(help: string): readonly string[] {
    const list = /^All DNS codes:\s*\n([^\n]+(?:\n[ \t]+[^\n]+)*)/m.exec(help)?.[1] ?? '';
    return list
        .split(',')
        .map((code) => code.trim())
        .filter((code) => /^[a-z0-9][a-z0-9-]{0,63}$/.test(code) && !hidden.has(code));
}

/** The page of one code as a type; null when it cannot be read or has no field at all. */
export function readType(code: string, page: string): ProviderType | null {
    const label = /^Configuration for (.+)\.\s*$/m.exec(page)?.[1]?.trim() ?? code;
    const credentials = readFields(section(page, 'Credentials'));
    const more = readFields(section(page, 'Additional Configuration'));
    const fields: ProviderField[] = [
        ...credentials.map(({ name, help }) => ({
            name,
            label: labelOf(name),
            secret: isSecret(name),
            required: credentials.length === 1,
            help
        })),
        ...more.map(({ name, help }) => ({
            name,
            label: labelOf(name),
            secret: isSecret(name),
            required: false,
            help
        }))
    ];
    return fields.length === 0 ? null : { type: code, label, builtIn: false, fields };
}

/**
 * Whether a variable may be handed to the command at all, whatever its help says. Variables that steer the process itself or its
 * libraries, and those that name files of this machine, may not.
 */
export function isAllowedVariable(name: string): boolean {
    return (
        /^[A-Z][A-Z0-9_]{0,63}$/.test(name) &&
        !/^(?:PATH|HOME|SHELL|USER|LOGNAME|IFS|ENV|BASH_.*|TMPDIR|LD_.*|DYLD_.*|LC_.*|LANG.*|LEGO_.*|GO[A-Z]*|SSL_CERT_.*|.*_PROXY|NODE_.*|EXEC_.*|RFC2136_.*)$/.test(
            name
        ) &&
        !/(?:_FILE|_PATH|_DIR)$/.test(name)
    );
}

function section(page: string, title: string): string {
    return new RegExp(`^${title}:\\s*\\n((?:[ \\t]+- [^\\n]*\\n?)*)`, 'm').exec(page)?.[1] ?? '';
}

function readFields(text: string): readonly { readonly name: string; readonly help: string }[] {
    return [...text.matchAll(/^[ \t]+- "([^"\n]+)":[ \t]*([^\n]*)$/gm)].flatMap(([, name = '', help = '']) =>
        isAllowedVariable(name) ? [{ name, help: help.trim().slice(0, 500) }] : []
    );
}

/** What is plainly no secret is shown while it is typed; whatever is not known is treated as one. */
function isSecret(name: string): boolean {
    const open =
        /(?:TIMEOUT|INTERVAL|TTL|URL|HOST|HOSTNAME|ENDPOINT|REGION|EMAIL|USER|USERNAME|USER_?NAME|LOGIN|PROJECT|PROJECT_ID|PROJECT_NAME|ZONE|ZONE_ID|ZONE_NAME|HOSTED_ZONE_ID|DOMAIN|DOMAIN_ID|ENVIRONMENT|MODE|SANDBOX|RETRIES|TENANT_ID|CLIENT_ID|SUBSCRIPTION_ID|RESOURCE_GROUP|ACCOUNT|ACCOUNT_ID|ACCOUNT_NAME|CUSTOMER_NUMBER|CUSTOMER_ID|ORG|ORGANIZATION|VIEW|DNS_VIEW|PORT|BASE|SERVER|SERVER_NAME|PROFILE|CONTEXT|NAMESPACE|SSL_VERIFY|SKIP_VERIFY|INSECURE|VERSION|WAPI_VERSION|BASE_URL|API_URL|BASEURL|CONFIG|FOLDER_ID|COMPARTMENT_OCID|TENANCY_OCID|USER_OCID|PUBKEY_FINGERPRINT|PRIVATE_ZONE|PROPAGATION|LOAD_CONFIG|ROLE_ARN|AUTH_ID|SUB_AUTH_ID)$/;
    return !open.test(name);
}

const words: Readonly<Record<string, string>> = {
    API: 'API',
    DNS: 'DNS',
    TTL: 'TTL',
    URL: 'URL',
    HTTP: 'HTTP',
    ID: 'ID',
    AWS: 'AWS',
    CF: 'CF',
    OVH: 'OVH',
    GCE: 'GCE'
};

/** `CF_DNS_API_TOKEN` as `CF DNS API token`. */
function labelOf(name: string): string {
    const text = name
        .split('_')
        .map((word) => words[word] ?? word.toLowerCase())
        .join(' ');
    return text.charAt(0).toUpperCase() + text.slice(1);
}
