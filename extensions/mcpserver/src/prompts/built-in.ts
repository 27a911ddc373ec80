/** The prompts that come with the plugin. */
import type { Prompt } from './prompt.ts';

const source = 'mcpserver';

/** Prompts of the plugin itself. */
export const builtInPrompts: readonly Prompt[] = [
    {
        name: 'unhealthy',
        title: 'What is wrong here?',
        description: 'Collects everything that is not healthy, and proposes what to do about it',
        arguments: [],
        text: [
            'Find out what is wrong on this server.',
            'Read the health of the panel and its plugins, the state of the engine and of the hosts, certificates that end soon, and failed tasks; use portico__find_tools to find the tools for that.',
            'List what you found, the worst first, each with its evidence and a remedy. Change nothing.'
        ].join('\n'),
        source,
        readOnly: true
    },
    {
        name: 'explain_host',
        title: 'Explain a host',
        description: 'Says what a host serves, where its requests go, and why it does not work if so',
        arguments: [{ name: 'domain', required: true }],
        text: [
            'Explain the host {{domain}} of this panel.',
            'Find it among the hosts. Say where its requests go, which certificate it has, and what its state is.',
            'If it does not serve, find out why, and propose the change that mends it with portico__plan. Make no change before I agree.'
        ].join('\n'),
        source,
        readOnly: true
    },
    {
        name: 'review_changes',
        title: 'Review the latest changes',
        description: 'Reads the audit log and says who changed what, and what looks wrong',
        arguments: [{ name: 'since', required: false }],
        text: [
            'Review what was changed on this panel (since {{since}}; without a time: in the last day).',
            'Read the audit log and the revisions of the hosts. Summarise by user what was changed.',
            'Point out what looks like a mistake or an attack, and say how each could be taken back. Change nothing.'
        ].join('\n'),
        source,
        readOnly: true
    }
];
