/** What a schema cannot say of a model: that addresses are addresses, names exist, and conditions fit together. */
import { errors } from '@portico/sdk';

import { AddressInvalid, parsePrefix } from '../address/interval.ts';
import { readPorts } from '../address/ports.ts';
import type { AddressSet, Model, Nat, Rule, Zone } from './model.ts';
import { knownServices } from './objects/known-services.ts';
import { readServicePort } from './objects/terms.ts';
import { parseTarget } from './target.ts';

/** What is wrong, and where: `path` is dotted. */
export interface Fault {
    readonly path: string;
    readonly message: string;
}

/** @throws VALIDATION_FAILED 40001 with every fault */
export function refuseFaults(faults: readonly Fault[]): void {
    if (faults.length > 0) {
        throw errors.invalid(faults);
    }
}

/** What is wrong with a rule. */
export function faultsOfRule(rule: Rule, model: Model): readonly Fault[] {
    const faults = [
        ...faultsOfAddresses('sources', rule.sources, model),
        ...faultsOfAddresses('destinations', rule.destinations, model),
        ...faultsOfPorts(rule.ports),
        ...rule.services.flatMap((name, index) =>
            knownServices.has(name) || model.services.some((each) => each.name === name)
                ? []
                : [{ path: `services.${index}`, message: `There is no service ${name}` }]
        )
    ];
    if (rule.zone !== null && !model.zones.some(({ name }) => name === rule.zone)) {
        faults.push({ path: 'zone', message: `There is no zone ${rule.zone}` });
    }
    if (rule.zone !== null && rule.direction === 'out') {
        faults.push({
            path: 'zone',
            message: 'A zone says where packets come from; name destinations for what this machine sends'
        });
    }
    if (rule.ports.length > 0 && rule.protocol.startsWith('icmp')) {
        faults.push({ path: 'ports', message: 'ICMP has no ports' });
    }
    const wanted = rule.protocol === 'icmp' ? 'ipv4' : rule.protocol === 'icmpv6' ? 'ipv6' : null;
    if (wanted !== null && rule.family !== 'any' && rule.family !== wanted) {
        faults.push({ path: 'family', message: `${rule.protocol} belongs to ${wanted}` });
    }
    return faults;
}

/** What is wrong with a zone. */
export function faultsOfZone(zone: Zone, model: Model): readonly Fault[] {
    return zone.interfaces.length + zone.sources.length === 0
        ? [{ path: 'interfaces', message: 'A zone has interfaces or addresses' }]
        : faultsOfAddresses('sources', zone.sources, model);
}

/** What is wrong with a set. */
export function faultsOfSet(
    { source, url, countries }: AddressSet,
    hasCountrySource: boolean
): readonly Fault[] {
    if (source === 'url' && url === null) {
        return [{ path: 'url', message: 'A set from a URL needs the URL' }];
    }
    if (source === 'country' && countries.length === 0) {
        return [{ path: 'countries', message: 'A set by country needs countries' }];
    }
    return source === 'country' && !hasCountrySource
        ? [
              {
                  path: 'source',
                  message: 'The setting countrySource says where lists of countries come from; it is empty'
              }
          ]
        : [];
}

/** What is wrong with a translation. */
export function faultsOfNat(nat: Nat, model: Model): readonly Fault[] {
    const faults = [...faultsOfAddresses('sources', nat.sources, model), ...faultsOfPorts(nat.ports)];
    const target = nat.to === null ? null : parseTarget(nat.to);
    const needs = { dnat: 'an address', snat: 'an address', redirect: 'a port', masquerade: 'nothing' }[
        nat.type
    ];
    const isRight = {
        dnat: target?.address != null,
        snat: target?.address != null && target.port === null,
        redirect: target !== null && target.address === null,
        masquerade: nat.to === null
    }[nat.type];
    if (!isRight) {
        faults.push({ path: 'to', message: `${nat.type} needs ${needs} as its target` });
    }
    if ((nat.ports.length > 0 || target?.port != null) && nat.protocol === 'any') {
        faults.push({ path: 'protocol', message: 'Ports need the protocol tcp or udp' });
    }
    if (nat.type === 'redirect' && nat.ports.length === 0) {
        faults.push({ path: 'ports', message: 'A redirect needs the ports that visitors use' });
    }
    return faults;
}

/** What is wrong with the ports of a service. */
export function faultsOfServicePorts(ports: readonly string[]): readonly Fault[] {
    return ports.flatMap((text, index) =>
        readServicePort(text) === null
            ? [
                  {
                      path: `ports.${index}`,
                      message: `${JSON.stringify(text)} is not of the form tcp/8080, udp/5000-5010 or icmp`
                  }
              ]
            : []
    );
}

function faultsOfPorts(ports: readonly string[]): readonly Fault[] {
    return ports.flatMap((text, index) =>
        readPorts(text) === null
            ? [
                  {
                      path: `ports.${index}`,
                      message: `${JSON.stringify(text)} is no port from 1 to 65535 and no range such as 8000-8100`
                  }
              ]
            : []
    );
}

function faultsOfAddresses(path: string, texts: readonly string[], { sets }: Model): Fault[] {
    return texts.flatMap((text, index): Fault[] => {
        const at = `${path}.${index}`;
        if (text.startsWith('@')) {
            return sets.some(({ name }) => name === text.slice(1))
                ? []
                : [{ path: at, message: `There is no set ${JSON.stringify(text.slice(1))}` }];
        }
        try {
            parsePrefix(text);
            return [];
        } catch (error) {
            if (error instanceof AddressInvalid) {
                return [{ path: at, message: error.message }];
            }
            throw error;
        }
    });
}
