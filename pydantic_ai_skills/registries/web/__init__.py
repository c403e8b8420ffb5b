"""Downloads from web servers, safely."""
