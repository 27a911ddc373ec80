/** The functions by which a model hands over findings and documents. */
import type { Actor } from '@portico/sdk';

import type { Finding } from '../answers/events.ts';
import type { OwnTool } from '../answers/own-tools.ts';
import type { DocumentKind, Documents } from './documents.ts';

const mostFindings = 50;
/** How often a document may be wrong before it is shown with its problems. */
const mostTries = 3;
const severities = ['info', 'warning', 'critical'] as const;
const text = { type: 'string' } as const;
const orNull: { type: ('string' | 'null')[] } = { type: ['string', 'null'] };

/** Takes findings; the answer has what it was for with the first list. */
export function reportFindings(): OwnTool {
    return {
        definition: {
            type: 'function',
            name: 'report_findings',
            description: 'Reports what you found, the most important first; an empty list when all is well',
            inputSchema: {
                type: 'object',
                properties: {
                    findings: {
                        type: 'array',
                        items: {
                            type: 'object',
                            properties: {
                                severity: { type: 'string', enum: [...severities] },
                                subject: {
                                    ...text,
                                    description: 'What it is about: a file and line, a host, a service'
                                },
                                message: { ...text, description: 'What is wrong, in one or two sentences' },
                                evidence: {
                                    ...orNull,
                                    description: 'The lines that show it, as they stand there'
                                },
                                remedy: { ...orNull, description: 'What helps' },
                                route: {
                                    ...orNull,
                                    description: 'The id of the route that shows or mends it'
                                }
                            },
                            required: ['severity', 'subject', 'message', 'evidence', 'remedy', 'route']
                        }
                    }
                },
                required: ['findings'],
                additionalProperties: false
            }
        },
        async run(input) {
            const { findings } = input as { readonly findings?: unknown };
            if (!Array.isArray(findings)) {
                return null;
            }
            const read = findings.slice(0, mostFindings).map(findingOf);
            return read.some((each) => each === null)
                ? null
                : {
                      data: { reported: read.length },
                      events: [{ event: 'findings', data: { findings: read as Finding[] } }],
                      done: true
                  };
        }
    };
}

/** Takes a document; one that is wrong goes back to the model, with what is wrong with it. */
export function submitDocument(documents: Documents, kind: DocumentKind, actor: Actor): OwnTool {
    let tries = 0;
    return {
        definition: {
            type: 'function',
            name: 'submit_document',
            description:
                'Hands over the whole document. It is checked; when it is wrong, mend it and hand it over again',
            inputSchema: {
                type: 'object',
                properties: { content: { ...text, description: 'The whole text of the document' } },
                required: ['content'],
                additionalProperties: false
            }
        },
        async run(input, signal) {
            const { content } = input as { readonly content?: unknown };
            if (typeof content !== 'string' || content.length > 262_144) {
                return null;
            }
            tries += 1;
            const problems = await documents.check(actor, kind, content, signal);
            const valid = problems.length === 0;
            if (!valid && tries < mostTries) {
                return { data: { valid, problems }, events: [], done: false };
            }
            return {
                data: { valid, problems },
                events: [{ event: 'document', data: { kind, content, valid, problems } }],
                done: true
            };
        }
    };
}

function findingOf(value: unknown): Finding | null {
    const given = (typeof value === 'object' && value !== null ? value : {}) as Partial<Finding>;
    const severity = severities.find((each) => each === given.severity);
    if (severity === undefined || typeof given.message !== 'string') {
        return null;
    }
    const orNothing = (each: unknown, most: number): string | null =>
        typeof each === 'string' && each !== '' ? each.slice(0, most) : null;
    return {
        severity,
        subject: String(given.subject ?? '').slice(0, 300),
        message: given.message.slice(0, 4_000),
        evidence: orNothing(given.evidence, 8_000),
        remedy: orNothing(given.remedy, 4_000),
        route: orNothing(given.route, 300)
    };
}
