/** What an app exposes, in words that can be compared: images, ports, mounts, and what the policy says. */
import { createHash } from 'node:crypto';

import { isLoopback, type PlannedPort } from './compose.ts';

/** What is exposed; each list is sorted. */
export interface Exposure {
    /** Repositories of images, without tags. */
    readonly images: readonly string[];
    readonly ports: readonly string[];
    readonly mounts: readonly string[];
    readonly findings: readonly string[];
}

/** What came and what went. */
export interface Difference {
    readonly added: readonly string[];
    readonly removed: readonly string[];
}

/** The difference of two exposures. */
export type ExposureDifference = Readonly<Record<keyof Exposure, Difference>>;

/** A mount as plans of `container` have it. */
export interface PlannedMount {
    readonly service: string;
    readonly type: string;
    readonly source: string | null;
    readonly target: string;
    readonly readOnly: boolean;
}

/** A finding of the policy of `container`. */
export interface PlannedFinding {
    readonly rule: string;
    readonly level: string;
    readonly service: string | null;
    readonly detail: string;
    readonly excepted: boolean;
}

/** Nothing: what an install is compared with. */
export const noExposure: Exposure = { images: [], ports: [], mounts: [], findings: [] };

const keys = ['images', 'ports', 'mounts', 'findings'] as const;

/** The repository of an image, with the registry and the folder that a short name leaves out. */
export function repositoryOf(image: string): string {
    const plain = image.replace(/@.*$/, '').replace(/:[^:/]*$/, '');
    const [first = ''] = plain.split('/');
    if (plain.includes('/') && (/[.:]/.test(first) || first === 'localhost')) {
        return plain;
    }
    return plain.includes('/') ? `docker.io/${plain}` : `docker.io/library/${plain}`;
}

/** What a plan exposes. Ports on loopback have no number: it is the panel's choice. */
export function exposureOf(plan: {
    readonly images: readonly { readonly image: string }[];
    readonly ports: readonly PlannedPort[];
    readonly mounts: readonly PlannedMount[];
    readonly findings: readonly PlannedFinding[];
}): Exposure {
    return {
        images: sorted(plan.images.map(({ image }) => repositoryOf(image))),
        ports: sorted(plan.ports.map(portText)),
        mounts: sorted(
            plan.mounts.map(({ service, type, source, target, readOnly }) =>
                [`${service}: ${type}`, source ?? '', `at ${target}${readOnly ? ', read only' : ''}`]
                    .filter((word) => word !== '')
                    .join(' ')
            )
        ),
        findings: sorted(
            plan.findings.map(
                ({ rule, service, detail }) => `${service === null ? '' : `${service}: `}${rule} ${detail}`
            )
        )
    };
}

function portText({ service, containerPort, protocol, hostIp, hostPort }: PlannedPort): string {
    const where = isLoopback(hostIp) ? 'this machine' : `${hostIp || '0.0.0.0'}:${hostPort ?? ''}`;
    return `${service}: ${containerPort}/${protocol} on ${where}`;
}

const sorted = (texts: readonly string[]): readonly string[] => [...new Set(texts)].sort();

/** What the second exposes that the first does not, and the reverse. */
export function compareExposures(before: Exposure, after: Exposure): ExposureDifference {
    const difference = (key: keyof Exposure): Difference => ({
        added: after[key].filter((text) => !before[key].includes(text)),
        removed: before[key].filter((text) => !after[key].includes(text))
    });
    return {
        images: difference('images'),
        ports: difference('ports'),
        mounts: difference('mounts'),
        findings: difference('findings')
    };
}

/** Whether anything was added. */
export const isWider = (difference: ExposureDifference): boolean =>
    keys.some((key) => difference[key].added.length > 0);

/** The word by which consent is given: it stands for what is added to this app under this name, and for nothing else. */
export function consentFor(subject: readonly (string | null)[], difference: ExposureDifference): string {
    const added = keys.map((key) => difference[key].added);
    return createHash('sha256')
        .update(JSON.stringify([subject, added]))
        .digest('hex')
        .slice(0, 40);
}
