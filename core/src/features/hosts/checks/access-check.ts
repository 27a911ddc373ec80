/**
 * Tells whether a request would get into a host, and why: the engine's conditions in the engine's order, without sending a request. A host
 * that is disabled or in maintenance lets no request in.
 */
import type { Site } from '../../../engine/site.ts';
import { contains, parseIp, parseRange, unmapped } from '../../../platform/address/ip.ts';
import type { AccessCheck, AccessVerdict } from '../schema/access-check.ts';

type Step = AccessVerdict['steps'][number];

/** `allowed` is null when the forward-auth server decides. */
interface Outcome {
    readonly allowed: boolean | null;
    readonly status: number | null;
}

/**
 * Judges a request against the access rules of a site.
 * @param compare - tells whether a password has this bcrypt hash
 */
export async function checkAccess(
    site: Site,
    request: AccessCheck,
    compare: (password: string, hash: string) => Promise<boolean>
): Promise<AccessVerdict> {
    const steps: Step[] = [];
    const end = ({ allowed, status }: Outcome): AccessVerdict => ({ allowed, status, steps });
    if (!site.enabled) {
        steps.push({
            rule: 'enabled',
            outcome: 'refused',
            evidence: 'The host is disabled: its name is answered like an unknown one'
        });
        return end({ allowed: false, status: 404 });
    }
    if (site.maintenance) {
        steps.push({ rule: 'maintenance', outcome: 'refused', evidence: 'The host is in maintenance' });
        return end({ allowed: false, status: 503 });
    }
    const { allow, deny, basicAuth, forwardAuth } = site.access;
    const denied = deny.find((range) => includes(range, request.ip));
    if (deny.length > 0) {
        steps.push(
            denied === undefined
                ? {
                      rule: 'deny',
                      outcome: 'passed',
                      evidence: `${request.ip} is in none of the ${deny.length} denied ranges`
                  }
                : { rule: 'deny', outcome: 'refused', evidence: `${request.ip} is in ${denied}` }
        );
        if (denied !== undefined) {
            return end({ allowed: false, status: 403 });
        }
    }
    const allowed = allow.find((range) => includes(range, request.ip));
    if (allow.length > 0) {
        steps.push(
            allowed === undefined
                ? {
                      rule: 'allow',
                      outcome: 'refused',
                      evidence: `${request.ip} is in none of the ${allow.length} allowed ranges`
                  }
                : { rule: 'allow', outcome: 'passed', evidence: `${request.ip} is in ${allowed}` }
        );
        if (allowed === undefined) {
            return end({ allowed: false, status: 403 });
        }
    }
    const password = await passwordStep(basicAuth, request, compare);
    if (password !== null) {
        steps.push(password);
        if (password.outcome !== 'passed') {
            return end({ allowed: false, status: 401 });
        }
    }
    if (forwardAuth !== null) {
        steps.push({
            rule: 'forwardAuth',
            outcome: 'asked',
            evidence: `${forwardAuth.url} decides: a 2xx answer lets the request in. It was not asked`
        });
        return end({ allowed: null, status: null });
    }
    return end({ allowed: true, status: null });
}

async function passwordStep(
    users: Site['access']['basicAuth'],
    { user, password }: AccessCheck,
    compare: (password: string, hash: string) => Promise<boolean>
): Promise<Step | null> {
    if (users.length === 0) {
        return null;
    }
    if (user === undefined) {
        return {
            rule: 'basicAuth',
            outcome: 'refused',
            evidence: `A password is asked; it could be that of ${users.map(({ username }) => username).join(', ')}`
        };
    }
    const known = users.find(({ username }) => username === user);
    if (known === undefined) {
        return { rule: 'basicAuth', outcome: 'refused', evidence: `${user} is not a user of this host` };
    }
    if (password === undefined) {
        return {
            rule: 'basicAuth',
            outcome: 'passed',
            evidence: `${user} is a user of this host; the password was taken as right`
        };
    }
    return (await compare(password, known.hash))
        ? { rule: 'basicAuth', outcome: 'passed', evidence: `The password is that of ${user}` }
        : { rule: 'basicAuth', outcome: 'refused', evidence: `The password is not that of ${user}` };
}

/** Whether an address is in a range, or equal to a single address. An IPv4-mapped IPv6 address counts as IPv4, as on the wire. */
function includes(text: string, address: string): boolean {
    const [range, ip] = [parseRange(text), parseIp(address)];
    return range !== null && ip !== null && contains(range, unmapped(ip));
}
