/** The shapes of rules, zones, sets, NAT and policies in requests and answers. */
import { joi } from '@portico/sdk';

const ignored = joi.readOnly(joi.any()).description('Ignored in a write');
const version = joi
    .number()
    .integer()
    .label('Version')
    .description('Acts as If-Match')
    .meta({ ui: { column: false } });

/** Names of zones, sets and services: short, and without any character that means something to `nft`. */
export const objectName = joi
    .string()
    .min(1)
    .max(30)
    .pattern(/^[A-Za-z][A-Za-z0-9_-]*$/);
/** An interface, or all whose names begin so, as `wg*`. */
export const interfaceName = joi
    .string()
    .max(15)
    .pattern(/^[A-Za-z0-9][A-Za-z0-9_.:@-]*\*?$/);
const words = {
    direction: {
        in: 'To this machine',
        out: 'From this machine',
        forward: 'Through this machine',
        container: 'To published ports'
    },
    action: { accept: 'Accept', drop: 'Drop', reject: 'Reject' },
    family: { any: 'IPv4 and IPv6', ipv4: 'IPv4', ipv6: 'IPv6' },
    protocol: { any: 'Any', tcp: 'TCP', udp: 'UDP', icmp: 'ICMP', icmpv6: 'ICMPv6' },
    source: { manual: 'By hand', url: 'From a URL', country: 'By country' },
    nat: {
        dnat: 'Send to another address',
        snat: 'Send as another address',
        masquerade: 'Send as the address of the interface',
        redirect: 'Send to another port of this machine'
    },
    natProtocol: { any: 'Any', tcp: 'TCP', udp: 'UDP' },
    per: { second: 'Second', minute: 'Minute', hour: 'Hour' }
} as const;
const tones = { accept: 'good', drop: 'bad', reject: 'warning' } as const;
const action = joi.choice(words.action).meta({ ui: { tones } });
const addresses = joi.array().items(joi.string().min(1).max(64)).max(1_000);
const ports = joi.array().items(joi.string().min(1).max(11)).max(100);

/** The fields of a rule that a request may name. */
const rule = {
    direction: joi
        .choice(words.direction)
        .label('Direction')
        .meta({ ui: { column: 2 } }),
    action: action.label('Action').meta({ ui: { column: 1, tones } }),
    family: joi
        .choice(words.family)
        .label('IP version')
        .meta({ ui: { advanced: true } }),
    protocol: joi
        .choice(words.protocol)
        .label('Protocol')
        .meta({ ui: { column: 3 } }),
    ports: ports
        .label('Ports')
        .description('`22`, or `8000-8100`')
        .meta({ ui: { column: 4 } }),
    services: joi
        .array()
        .items(objectName)
        .max(50)
        .label('Services')
        .description('`ssh`, `https` and others')
        .meta({ ui: { column: 5 } }),
    sources: addresses
        .label('From')
        .description('Addresses, prefixes, or sets as `@name`')
        .meta({ ui: { column: 6, widget: 'lines' } }),
    destinations: addresses
        .label('To')
        .description('Addresses, prefixes, or sets as `@name`')
        .meta({ ui: { widget: 'lines' } }),
    zone: objectName.allow(null).label('Zone'),
    interface: interfaceName
        .allow(null)
        .label('Interface')
        .description('Where packets come in; of direction `out`, where they go out')
        .meta({ ui: { advanced: true } }),
    rate: joi
        .object({
            count: joi.number().integer().min(1).max(1_000_000).required().label('Count'),
            per: joi.choice(words.per).required().label('Per'),
            burst: joi.number().integer().min(1).max(1_000_000).default(5).label('Burst')
        })
        .allow(null)
        .label('Rate')
        .description('Accepts only so many new connections; drops and rejects only those beyond it')
        .meta({ ui: { advanced: true } }),
    log: joi
        .boolean()
        .label('Log')
        .meta({ ui: { advanced: true } }),
    comment: joi
        .string()
        .allow('')
        .max(128)
        .pattern(/^[^\p{C}\u2028\u2029]*$/u)
        .label('Comment')
        .meta({ ui: { column: 7 } }),
    expiresAt: joi.string().isoDate().allow(null).label('Expires'),
    enabled: joi
        .boolean()
        .label('Enabled')
        .meta({ ui: { column: 8 } }),
    position: joi
        .number()
        .integer()
        .min(1)
        .max(2_000)
        .label('Position')
        .description('Place among the rules, 1 first; default: the last')
};
const counted = { packets: ignored, bytes: ignored, id: ignored };
/** The body that creates a rule. */
export const newRule = joi.object({
    ...rule,
    direction: rule.direction.required(),
    action: rule.action.required(),
    family: rule.family.default('any'),
    protocol: rule.protocol.default('any'),
    ports: rule.ports.default([]),
    services: rule.services.default([]),
    sources: rule.sources.default([]),
    destinations: rule.destinations.default([]),
    zone: rule.zone.default(null),
    interface: rule.interface.default(null),
    rate: rule.rate.default(null),
    log: rule.log.default(false),
    comment: rule.comment.default(''),
    expiresAt: rule.expiresAt.default(null),
    enabled: rule.enabled.default(true),
    version: ignored,
    ...counted
});
/** The body that changes a rule. */
export const changedRule = joi.object({ ...rule, version, ...counted });

const zone = {
    name: objectName.label('Name').meta({ ui: { column: 1 } }),
    interfaces: joi
        .array()
        .items(interfaceName)
        .max(100)
        .label('Interfaces')
        .meta({ ui: { column: 2, widget: 'lines' } }),
    sources: addresses
        .label('Addresses')
        .description('Addresses and prefixes')
        .meta({ ui: { column: 3, widget: 'lines' } }),
    policy: action
        .allow(null)
        .label('Policy')
        .description('For what no rule matches; empty: as the policy says')
        .meta({ ui: { column: 4, tones } })
};
/** The body that creates a zone. */
export const newZone = joi.object({
    ...zone,
    name: zone.name.required(),
    interfaces: zone.interfaces.default([]),
    sources: zone.sources.default([]),
    policy: zone.policy.default(null),
    version: ignored,
    id: ignored
});
/** The body that changes a zone. */
export const changedZone = joi.object({ ...zone, version, id: ignored });

const set = {
    name: objectName.label('Name').meta({ ui: { column: 1 } }),
    family: joi
        .choice({ ipv4: 'IPv4', ipv6: 'IPv6' })
        .label('IP version')
        .meta({ ui: { column: 2 } }),
    source: joi
        .choice(words.source)
        .label('Comes from')
        .meta({ ui: { column: 3 } }),
    url: joi
        .string()
        .uri({ scheme: ['https', 'http'] })
        .max(2_000)
        .allow(null)
        .label('URL')
        .description(
            'A text with an address or prefix on each line; `http` only where the address is granted'
        ),
    countries: joi
        .array()
        .items(joi.string().pattern(/^[A-Za-z]{2}$/))
        .max(250)
        .label('Countries')
        .description('Two letters each, as in ISO 3166'),
    everyHours: joi.number().integer().min(1).max(8_760).label('Fetch every').unit('hour')
};
const readOnlyOfSet = { id: ignored, elements: ignored, skipped: ignored, updatedAt: ignored };
/** The body that creates a set. */
export const newSet = joi.object({
    ...set,
    name: set.name.required(),
    family: set.family.required(),
    source: set.source.default('manual'),
    url: set.url.default(null),
    countries: set.countries.default([]),
    everyHours: set.everyHours.default(24),
    version: ignored,
    ...readOnlyOfSet
});
/** The body that changes a set; its family stays. */
export const changedSet = joi.object({ ...set, version, ...readOnlyOfSet });

const nat = {
    type: joi
        .choice(words.nat)
        .label('Kind')
        .meta({ ui: { column: 1 } }),
    protocol: joi
        .choice(words.natProtocol)
        .label('Protocol')
        .meta({ ui: { column: 2 } }),
    ports: ports.label('Ports').meta({ ui: { column: 3 } }),
    to: joi
        .string()
        .max(60)
        .allow(null)
        .label('To')
        .description('`10.0.0.5`, `10.0.0.5:8080`, `[fd00::5]:8080`, or a port')
        .meta({ ui: { column: 4 } }),
    interface: interfaceName
        .allow(null)
        .label('Interface')
        .description('Where packets come in; of snat and masquerade, where they go out')
        .meta({ ui: { column: 5 } }),
    sources: addresses.label('From').meta({ ui: { widget: 'lines' } })
};
/** The body that creates a translation. */
export const newNat = joi.object({
    ...nat,
    type: nat.type.required(),
    protocol: nat.protocol.default('any'),
    ports: nat.ports.default([]),
    to: nat.to.default(null),
    interface: nat.interface.default(null),
    sources: nat.sources.default([]),
    version: ignored,
    id: ignored
});
/** The body that changes a translation. */
export const changedNat = joi.object({ ...nat, version, id: ignored });

/** Ports of a service of the admin's own. */
const servicePorts = joi
    .array()
    .items(joi.string().max(20))
    .min(1)
    .max(50)
    .label('Ports')
    .description('`tcp/8080`, `udp/5000-5010`, `icmp`')
    .meta({ ui: { column: 2 } });
/** The body that creates a service. */
export const newService = joi.object({
    name: objectName
        .required()
        .label('Name')
        .meta({ ui: { column: 1 } }),
    ports: servicePorts.required(),
    builtIn: ignored
});

/** The body that changes the policies. */
export const changedPolicy = joi.object({
    input: action.label('To this machine'),
    output: action.label('From this machine'),
    forward: action.label('Through this machine'),
    container: action.label('To published ports')
});
