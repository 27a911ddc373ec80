/** Makes descriptions safe to show: what of a catalogue's Markdown becomes HTML has no way to act. */
import markdownIt from 'markdown-it';
import sanitize from 'sanitize-html';

const markdown = markdownIt({ html: false, linkify: true });

const allowed = {
    allowedTags: [
        ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'p', 'br', 'hr', 'blockquote', 'pre', 'code', 'em', 'strong'],
        ...['s', 'ul', 'ol', 'li', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'a']
    ],
    allowedAttributes: { a: ['href', 'rel', 'target'] },
    allowedSchemes: ['http', 'https'],
    allowProtocolRelative: false,
    disallowedTagsMode: 'discard' as const,
    transformTags: {
        a: sanitize.simpleTransform('a', { rel: 'noopener noreferrer nofollow', target: '_blank' })
    }
};

/** HTML of a Markdown text: headings, lists, tables, code and links to http and https. No image, style, script, handler, form or frame. */
export function safeHtml(text: string): string {
    return sanitize(markdown.render(text), allowed);
}
