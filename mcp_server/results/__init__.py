"""Results of tools: structured, with bounded lists, and as a few lines of text.

Pure. What others wrote is cut and cleaned in structured results, and quoted in texts. Imports
`optimizer`.
"""
